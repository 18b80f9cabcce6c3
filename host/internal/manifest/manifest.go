// Package manifest parses and checks the manifests of plugins.
package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/flowhost/flowhost/sdk/abi"
)

// Parse decodes a manifest and checks its structure, its version and its names.
// Unknown properties are ignored: they may belong to another version.
func Parse(text []byte) (*abi.Manifest, error) {
	if len(text) > abi.MaxManifest {
		return nil, fmt.Errorf("%d bytes long, and %d are allowed", len(text), abi.MaxManifest)
	}
	if err := checkStructure(text); err != nil {
		return nil, err
	}
	m := new(abi.Manifest)
	if err := json.Unmarshal(text, m); err != nil {
		return nil, err
	}
	if m.ABI != abi.Version {
		return nil, fmt.Errorf("it states ABI version %d, and version %d is offered", m.ABI, abi.Version)
	}
	for _, c := range m.Capabilities {
		if c.Name == "" {
			return nil, errors.New("a capability has no name")
		}
	}
	seen := map[string]bool{}
	for _, f := range m.Functions {
		if !ValidName(f.Name) {
			return nil, fmt.Errorf("a function cannot have the name %q", f.Name)
		}
		if seen[f.Name] {
			return nil, fmt.Errorf("function %q is listed twice", f.Name)
		}
		seen[f.Name] = true
	}
	return m, nil
}

// ValidName reports whether a function can have that name.
func ValidName(name string) bool {
	reserved := []string{abi.ExportInit, abi.ExportStart, abi.ExportMemory}
	return name != "" && !strings.HasPrefix(name, abi.ReservedPrefix) && !slices.Contains(reserved, name) &&
		!strings.ContainsFunc(name, func(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) })
}
