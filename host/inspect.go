package host

import (
	"context"
	"errors"
	"fmt"

	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/sdk/abi"
)

// Manifest describes a plugin, in the words of its author.
type Manifest = abi.Manifest

// Inspection describes a module without calling a function.
type Inspection struct {
	Path      string        `json:"path"`
	Size      int64         `json:"size"` // bytes
	Signature run.Signature `json:"signature"`
	Manifest  *Manifest     `json:"manifest,omitempty"`
	Origin    string        `json:"origin,omitempty"` // of the functions: one of the Manifest constants
	Imports   []Extern      `json:"imports"`
	Exports   []Extern      `json:"exports"` // functions and memories
	Memory    *Memory       `json:"memory,omitempty"`

	// Notes is what is wrong or surprising, in words for the module's author.
	// The first one is why the module cannot be hosted, when Usable is false.
	Notes  []string `json:"notes,omitempty"`
	Usable bool     `json:"usable"`
}

// Sandbox reports how the host makes instances of the module at path. It makes one, and
// runs its initialization, but none of its functions. It fails with a
// *[ModuleError] for a module that cannot be hosted, and with another error when
// its initialization takes too long.
func (h *Host) Sandbox(ctx context.Context, path string) (*Sandbox, error) {
	ctx, leave, err := h.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	m, err := h.loadFile(ctx, path)
	if err != nil {
		return nil, err
	}
	defer h.modules.release(m)
	if m.fault != nil {
		return nil, m.fault.at(path)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, h.tuning.Load().Timeout, run.ErrDeadline)
	defer cancel()
	err = h.ready(ctx, m.image)
	if err == nil {
		inv := newInvocation(&run.Call{}, m.signature.ABI, "", m.image.limits)
		used := h.calls.call(ctx, m.image, m.image.limits, func(l *lease) {
			err = m.image.trial(ctx, l, inv)
		})
		err = errors.Join(used, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: making an instance: %w", path, err)
	}
	box := m.image.sandbox()
	return &box, nil
}

// Inspect describes the module at path, also one that fits no ABI. It fails
// with a *[ModuleError] for a file that is no module at all.
func (h *Host) Inspect(ctx context.Context, path string) (*Inspection, error) {
	return h.inspect(ctx, path, func(ctx context.Context) (*module, error) { return h.loadFile(ctx, path) })
}

// InspectEmbedded is Inspect for a module that the program has in itself.
func (h *Host) InspectEmbedded(ctx context.Context, name string, binary []byte) (*Inspection, error) {
	return h.inspect(ctx, name, func(ctx context.Context) (*module, error) { return h.moduleOf(ctx, binary) })
}

func (h *Host) inspect(ctx context.Context, path string, load func(context.Context) (*module, error)) (*Inspection, error) {
	ctx, leave, err := h.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	m, err := load(ctx)
	if err != nil {
		return nil, err
	}
	defer h.modules.release(m)
	form := m.image.form
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
