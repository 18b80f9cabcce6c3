package run

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
)

// Definition is all that is needed to load a module of flow files again: a run
// in progress keeps the definition with which it was accepted, whatever happens
// to the files meanwhile.
type Definition struct {
	Prefix  string                     `json:"prefix,omitempty"` // of flow names, "billing/" for flows of directory billing
	Folder  string                     `json:"folder,omitempty"` // absolute, of the files; set when directories below it are granted
	Files   map[string][]byte          `json:"files"`            // flow files and files read by file functions, by path in the directory
	Vars    map[string]json.RawMessage `json:"vars,omitempty"`   // values given from outside, without those of sensitive variables
	Plugins map[string]string          `json:"plugins"`          // module digest by source as the files name it

	// Policies are digests of what the tasks of flows are granted and the operator allowed
	// when the definition was loaded, by the name of the flow; none for flows without grants.
	Policies map[string]string `json:"policies,omitempty"`
}

// Digest identifies the definition's content, "sha256:...".
func (d *Definition) Digest() string {
	hash := sha256.New()
	field := func(b []byte) {
		hash.Write(binary.BigEndian.AppendUint64(nil, uint64(len(b))))
		hash.Write(b)
	}
	field([]byte(d.Prefix))
	if d.Folder != "" {
		field([]byte("folder"))
		field([]byte(d.Folder))
	}
	for _, name := range slices.Sorted(maps.Keys(d.Files)) {
		field([]byte("file " + name))
		field(d.Files[name])
	}
	for _, name := range slices.Sorted(maps.Keys(d.Vars)) {
		field([]byte("var " + name))
		field(d.Vars[name])
	}
	for _, source := range slices.Sorted(maps.Keys(d.Plugins)) {
		field([]byte("plugin " + source))
		field([]byte(d.Plugins[source]))
	}
	for _, flow := range slices.Sorted(maps.Keys(d.Policies)) {
		field([]byte("policy " + flow))
		field([]byte(d.Policies[flow]))
	}
	return "sha256:" + hex.EncodeToString(hash.Sum(nil))
}
