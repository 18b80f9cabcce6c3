package host

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/flowhost/flowhost/host/internal/manifest"
	"github.com/flowhost/flowhost/host/internal/wasm"
	"github.com/flowhost/flowhost/sdk/abi"
)

// ErrNoManifest is returned by [Host.Embed] for a module of which nothing states
// a manifest: its functions are its exports.
var ErrNoManifest = errors.New("nothing states a manifest")

// EmbedOptions are the options of [Host.Embed]. The zero value
// works.
type EmbedOptions struct {
	Name    string // of the module in errors; default: its path
	Sidecar string // file of a manifest; default: plugin.json in the module's directory
}

// Embed gives the module at path with its manifest as its custom section
// flowhost.manifest, from where it is read without running anything, and with
// nothing else changed: the same module and manifest give the same bytes. The
// manifest is the output of the module's export, else the one beside it, else that of
// the section which it has.
//
// It fails with a *[ModuleError] when that manifest, or the module with it,
// cannot be used. Of a manifest beside the module more is asked than when a module
// is loaded: words that it cannot have are mistakes.
func (h *Host) Embed(ctx context.Context, path string, options EmbedOptions) ([]byte, error) {
	ctx, leave, err := h.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	name := cmp.Or(options.Name, path)
	binary, err := readModule(path, h.config.ModuleSize)
	if err != nil {
		return nil, err
	}
	embedded, err := h.embed(ctx, binary, cmp.Or(options.Sidecar, sidecarOf(path)))
	if err != nil {
		return nil, locate(err, name)
	}
	return embedded, nil
}

func (h *Host) embed(ctx context.Context, binary []byte, sidecar string) ([]byte, error) {
	walked, fault := preflight(binary, h.config.Preflight)
	if fault != nil {
		return nil, fault
	}
	plain, err := wasm.WithoutCustom(binary, abi.ManifestSection)
	if err != nil {
		return nil, err
	}
	m, err := h.moduleOf(ctx, plain)
	if err != nil {
		return nil, err
	}
	defer h.modules.release(m)
	text, err := h.statedBy(ctx, m)
	if err == nil && text == nil {
		text, err = sidecarManifest(sidecar)
	}
	if err == nil && text == nil {
		text = walked.Custom
	}
	switch {
	case err != nil:
		return nil, err
	case text == nil && m.fault != nil:
		return nil, m.fault
	case text == nil:
		return nil, ErrNoManifest
	}
	return h.described(ctx, plain, text)
}

// described gives a module with its manifest, if it can be used so.
func (h *Host) described(ctx context.Context, plain, stated []byte) ([]byte, error) {
	text, err := compacted(stated)
	if err != nil {
		return nil, err
	}
	embedded := wasm.AppendCustom(plain, abi.ManifestSection, text)
	m, err := h.moduleOf(ctx, embedded)
	if err != nil {
		return nil, err
	}
	defer h.modules.release(m)
	if m.fault != nil {
		return nil, m.fault
	}
	return embedded, nil
}

// moduleOf prepares a module whose bytes are at hand, to be released.
func (h *Host) moduleOf(ctx context.Context, binary []byte) (*module, error) {
	return h.module(ctx, digestOf(binary), false, func(context.Context) ([]byte, error) { return binary, nil })
}

// statedBy returns the output of the manifest export of a module without the section,
// nil if it has no such export.
func (h *Host) statedBy(ctx context.Context, m *module) ([]byte, error) {
	if m.image.form.exportType(abi.ExportManifest) != functionShape {
		return nil, nil
	}
	if m.fault != nil {
		return nil, m.fault
	}
	text, fault := m.askForManifest(ctx, h)
	if fault != nil {
		return nil, fault
	}
	return text, nil
}

// sidecarManifest reads and checks the manifest in a file. It gives nil where there
// is none.
func sidecarManifest(path string) ([]byte, error) {
	text, err := readSidecar(path)
	if text == nil || err != nil {
		return nil, err
	}
	if _, err = manifest.Parse(text); err == nil {
		err = manifest.CheckProperties(text)
	}
	if err != nil {
		return nil, &ModuleError{Reason: fmt.Sprintf("the manifest beside it, %s, is wrong: %s", path, err), Hint: "correct it"}
	}
	return text, nil
}

// compacted leaves out white space: formatting and the end of a file are no part
// of what is stated.
func compacted(stated []byte) ([]byte, error) {
	var out bytes.Buffer
	if err := json.Compact(&out, stated); err != nil {
		return nil, &ModuleError{Reason: "its manifest is wrong: " + err.Error()}
	}
	return out.Bytes(), nil
}
