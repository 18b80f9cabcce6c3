package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// maxManifestDepth bounds how deeply a manifest nests objects and lists, its
// schemas included.
const maxManifestDepth = 128

// ownDepth is the depth of the objects whose properties the manifest defines: itself,
// its functions and its capabilities. Deeper objects are schemas.
const ownDepth = 3

// checkStructure refuses a manifest with a duplicate property, of which readers take the
// first, the last or both, and one that is nested too deeply.
func checkStructure(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var open []map[string]bool // the properties of each open object; nil for a list
	name := false              // the next string is the name of a property
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch delim, _ := token.(json.Delim); {
		case delim == '{' || delim == '[':
			if len(open) == maxManifestDepth {
				return fmt.Errorf("it nests more than %d objects and lists", maxManifestDepth)
			}
			var names map[string]bool
			if delim == '{' {
				names = map[string]bool{}
			}
			open = append(open, names)
		case delim != 0:
			open = open[:len(open)-1]
		case name:
			if err := note(open[len(open)-1], token.(string), len(open) <= ownDepth); err != nil {
				return err
			}
			name = false
			continue
		}
		name = len(open) > 0 && open[len(open)-1] != nil
	}
}

// note notes a property of an object. The manifest's own properties are not case
// sensitive.
func note(names map[string]bool, name string, own bool) error {
	folded := name
	if own {
		folded = strings.ToLower(strings.ToUpper(name))
	}
	if names[folded] {
		return fmt.Errorf("it has %.80q twice in one object", name)
	}
	names[folded] = true
	return nil
}
