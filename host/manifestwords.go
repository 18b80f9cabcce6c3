package host

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/agext/levenshtein"

	"github.com/flowhost/flowhost/sdk/abi"
)

// checkWords finds a word in a manifest that has no meaning there. A module that
// is loaded may have such words, for another version's sake; in what its author
// has just written they are mistakes. The manifest is one that parses.
func checkWords(text []byte) error {
	var top map[string]json.RawMessage
	if err := json.Unmarshal(text, &top); err != nil {
		return err
	}
	if err := checkObject(top, reflect.TypeFor[abi.Manifest](), "$schema"); err != nil {
		return err
	}
	var parts struct {
		Capabilities []map[string]json.RawMessage `json:"capabilities"`
		Functions    []map[string]json.RawMessage `json:"functions"`
	}
	if err := json.Unmarshal(text, &parts); err != nil {
		return err
	}
	for n, c := range parts.Capabilities {
		if err := checkObject(c, reflect.TypeFor[abi.Capability]()); err != nil {
			return fmt.Errorf("capabilities[%d]: %w", n, err)
		}
	}
	for n, f := range parts.Functions {
		if err := checkObject(f, reflect.TypeFor[abi.ManifestFunction]()); err != nil {
			return fmt.Errorf("functions[%d]: %w", n, err)
		}
	}
	return nil
}

// checkObject compares the words of an object with the fields of its type, and
// with others that it may have.
func checkObject(object map[string]json.RawMessage, t reflect.Type, others ...string) error {
	known := others
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		known = append(known, name)
	}
	for _, word := range slices.Sorted(maps.Keys(object)) {
		if slices.Contains(known, word) {
			continue
		}
		if near := nearest(word, known); near != "" {
			return fmt.Errorf("it has no word %q; did you mean %q?", word, near)
		}
		return fmt.Errorf("it has no word %q", word)
	}
	return nil
}

// nearest is the name that is most likely meant by a misspelt one, or "": two of
// five letters may be wrong, so that two that were swapped are found.
func nearest(given string, names []string) string {
	best, least := "", max(1, 2*len(given)/5)+1
	for _, name := range names {
		if d := levenshtein.Distance(given, name, nil); d < least {
			best, least = name, d
		}
	}
	return best
}
