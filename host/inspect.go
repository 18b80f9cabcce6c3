package host

import (
	"context"
	"fmt"

	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/sdk/abi"
)

// Inspection is all that can be said of a module without calling a function.
type Inspection struct {
	Path      string        `json:"path"`
	Size      int64         `json:"size"` // bytes
	Signature run.Signature `json:"signature"`
	Manifest  *abi.Manifest `json:"manifest,omitempty"`
	Origin    string        `json:"origin,omitempty"` // of the functions: one of the Manifest constants
	Imports   []Extern      `json:"imports"`
	Exports   []Extern      `json:"exports"` // functions and memories
	Memory    *Memory       `json:"memory,omitempty"`

	// Notes is what is wrong or surprising, in words for the module's author.
	// The first one is why the module cannot be hosted, when Usable is false.
	Notes  []string `json:"notes,omitempty"`
	Usable bool     `json:"usable"`
}

// Inspect describes the module at path, also one that fits no ABI. It fails
// with a *[ModuleError] for a file that is no module at all.
func (h *Host) Inspect(ctx context.Context, path string) (*Inspection, error) {
	ctx, leave, err := h.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	m, _, err := h.loadFile(ctx, path)
	if err != nil {
		return nil, err
	}
	form := m.image.shape()
	return &Inspection{
		Path: path, Size: form.size, Signature: m.signature,
		Manifest: m.manifest, Origin: m.origin,
		Imports: form.imports, Exports: form.exports, Memory: form.memory,
		Notes: m.notes(), Usable: m.fault == nil,
	}, nil
}

func (m *module) notes() []string {
	var notes []string
	if m.fault != nil {
		notes = append(notes, m.fault.Reason+"; "+m.fault.Hint)
	}
	for _, name := range m.unlisted() {
		notes = append(notes, fmt.Sprintf("export %q has the type of a function and cannot be called: the manifest does not list it", name))
	}
	return notes
}
