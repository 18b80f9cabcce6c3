package host

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

// ownDepth is how deep the objects lie whose words are the manifest's own: itself,
// its functions and its capabilities. Deeper ones are schemas.
const ownDepth = 3

// checkStructure refuses a manifest that says a word twice, of which readers take
// the first, the last or both, and one that nests so deeply that readers suffer.
func checkStructure(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var open []map[string]bool // the words of each object that is open; nil for a list
	word := false              // the next text is one
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
			var words map[string]bool
			if delim == '{' {
				words = map[string]bool{}
			}
			open = append(open, words)
		case delim != 0:
			open = open[:len(open)-1]
		case word:
			if err := note(open[len(open)-1], token.(string), len(open) <= ownDepth); err != nil {
				return err
			}
			word = false
			continue
		}
		word = len(open) > 0 && open[len(open)-1] != nil
	}
}

// note notes a word of an object. The manifest's own words are the same in
// capitals.
func note(words map[string]bool, word string, own bool) error {
	folded := word
	if own {
		folded = strings.ToLower(strings.ToUpper(word))
	}
	if words[folded] {
		return fmt.Errorf("it says %.80q twice in one object", word)
	}
	words[folded] = true
	return nil
}
