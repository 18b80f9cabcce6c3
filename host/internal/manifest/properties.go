package manifest

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/flowhost/flowhost/internal/suggest"
	"github.com/flowhost/flowhost/sdk/abi"
)

// CheckProperties fails if a manifest has an unknown property. A module that is loaded
// may have unknown properties, which belong to another version; in a file that its
// author has just written they are mistakes. The manifest must be one that [Parse]
// accepts.
func CheckProperties(text []byte) error {
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

// checkObject compares the properties of an object with the fields of its type, and
// with others that it may have.
func checkObject(object map[string]json.RawMessage, t reflect.Type, others ...string) error {
	known := others
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		known = append(known, name)
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if slices.Contains(known, name) {
			continue
		}
		if near := suggest.Nearest(name, known); near != "" {
			return fmt.Errorf("unknown property %q; did you mean %q?", name, near)
		}
		return fmt.Errorf("unknown property %q", name)
	}
	return nil
}
