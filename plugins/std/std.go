// Package std has the standard plugins: what flows need every day, always at hand as "std/NAME".
// A plugin is a part of a module, whose functions begin with its name and a dot; plugins that
// have much in common share a module, and its image.
//
// The modules are guests like any other, built from the directories beside this file. Their
// compressed bytes are committed, so that a build of flowhost needs no build for wasm before:
// `make std` makes them, and `make check` checks that they are what their source gives.
package std

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"
)

//go:generate make -C ../.. std

//go:embed *.wasm.zst digests
var files embed.FS

// modules are the modules by the plugins that are parts of them.
var modules = map[string]string{
	"http": "reach", "sql": "reach", "kv": "reach", "message": "reach", "mail": "reach", "webhook": "reach",
	"csv": "data", "jsonl": "data", "archive": "data", "hash": "data", "assert": "data", "sleep": "data",
	"jq": "jq", "template": "template",
}

// Names are the names of the plugins, sorted.
func Names() []string { return slices.Sorted(maps.Keys(modules)) }

// Modules are the names of the modules, sorted.
func Modules() []string {
	all := slices.Sorted(maps.Values(modules))
	return slices.Compact(all)
}

// Module is the module that a plugin is a part of.
type Module struct {
	Name   string
	Digest string // "sha256:…" of its bytes
}

// Find returns the module of a plugin.
func Find(name string) (Module, bool) {
	module, ok := modules[name]
	if !ok {
		return Module{}, false
	}
	return Module{module, Digest(module)}, true
}

// Digest is the digest of a module, "" if it is not built.
func Digest(module string) string {
	text, err := files.ReadFile("digests")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if name, digest, _ := strings.Cut(strings.TrimSpace(line), " "); name == module {
			return digest
		}
	}
	return ""
}

// Open returns the bytes of the module.
func (m Module) Open() ([]byte, error) {
	packed, err := files.ReadFile(m.Name + ".wasm.zst")
	if err != nil {
		return nil, fmt.Errorf("standard module %s: %w", m.Name, err)
	}
	r, err := zstd.NewReader(bytes.NewReader(packed), zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, fmt.Errorf("standard module %s: %w", m.Name, err)
	}
	defer r.Close()
	binary, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("standard module %s: %w", m.Name, err)
	}
	if sum := sha256.Sum256(binary); "sha256:"+hex.EncodeToString(sum[:]) != m.Digest {
		return nil, fmt.Errorf("standard module %s is not the one of its digest: build flowhost again", m.Name)
	}
	return binary, nil
}
