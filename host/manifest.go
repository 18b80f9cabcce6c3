package host

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/flowhost/flowhost/host/internal/manifest"
	"github.com/flowhost/flowhost/internal/suggest"
	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/sdk/abi"
)

// Where a manifest comes from.
const (
	ManifestSection = "section" // the custom section flowhost.manifest
	ManifestExport  = "export"  // what the export flowhost_manifest wrote
	ManifestExports = "exports" // none: the functions are the exports of type () -> i32
)

// describe finds the manifest of a module whose ABI is known and binds each of
// its functions to the export that serves it. It runs guest code, within ctx
// and the host's limits, when the manifest is in the module's export only.
func (m *module) describe(ctx context.Context, h *Host) *ModuleError {
	form := m.image.form
	text, origin := form.manifest, ManifestSection
	if text == nil && form.exportType(abi.ExportManifest) == functionShape {
		var fault *ModuleError
		if text, fault = m.askForManifest(ctx, h); fault != nil {
			return fault
		}
		origin = ManifestExport
	}
	return m.bindAll(&form, text, origin)
}

// bindAll makes the functions of the manifest in text or, without one, those of the
// exports.
func (m *module) bindAll(form *shape, text []byte, origin string) *ModuleError {
	if text == nil {
		m.origin = ManifestExports
		return m.bindExports(form)
	}
	m.origin = origin
	parsed, err := manifest.Parse(text)
	if err != nil {
		return &ModuleError{Reason: "its manifest is wrong: " + err.Error(), Hint: "build it again with its SDK"}
	}
	m.manifest = parsed
	for _, c := range parsed.Capabilities {
		m.signature.Wants = append(m.signature.Wants, run.Want(c))
	}
	return m.bindManifest(form)
}

// askForManifest runs the module's own export that writes its manifest.
func (m *module) askForManifest(ctx context.Context, h *Host) ([]byte, *ModuleError) {
	limits := m.image.limits
	limits.Output = abi.MaxManifest
	inv := newInvocation(&run.Call{}, m.signature.ABI, abi.ExportManifest, limits)
	var result run.Result
	var lost error
	setup, cancel := describing(ctx)
	err := h.ready(setup, m.image)
	if err != nil {
		result, err = rejectedResult(setup, err)
	} else {
		err = h.calls.call(ctx, m.image, limits, func(l *lease) {
			ctx, cancel := describing(ctx) // without the time in which it waited
			defer cancel()
			status, err := m.image.run(ctx, l, inv, abi.ExportManifest)
			result, lost = inv.conclude(ctx, status, err)
		})
	}
	cancel()
	if err = errors.Join(err, lost); err != nil {
		result = failed(&run.Failure{Outcome: run.OutcomeLost, Message: err.Error()})
	}
	if result.Failure != nil {
		return nil, &ModuleError{
			passing: result.Failure.Outcome == run.OutcomeLost || result.Failure.Code == CodeBusy, // it did not run, or not to its end
			Reason:  "its export flowhost_manifest gave no manifest: " + result.Failure.Error(),
			Hint:    "it must only describe the plugin, and nothing in the module's initialization may fail",
		}
	}
	return result.Output, nil
}

// bindExports makes the module's functions out of its exports alone.
func (m *module) bindExports(form *shape) *ModuleError {
	if m.signature.ABI == ABIWASI {
		m.bind(abi.ManifestFunction{Name: commandFunction}, abi.ExportStart)
		return nil
	}
	for _, name := range plainFunctions(form) {
		m.bind(abi.ManifestFunction{Name: name}, name)
	}
	if len(m.exports) > 0 {
		return nil
	}
	fault := &ModuleError{
		Reason: "no function: nothing is exported with the type " + functionShape,
		Hint:   "export one; in Go with //go:wasmexport and -buildmode=c-shared",
	}
	if form.exportType(abi.ExportInvoke) != "" {
		fault.Reason = "no function: it has a dispatcher and no manifest that lists what it serves"
		fault.Hint = "add the custom section flowhost.manifest or the export flowhost_manifest"
	}
	return fault
}

// bindManifest makes the functions that the manifest lists, and no others.
func (m *module) bindManifest(form *shape) *ModuleError {
	functions := m.manifest.Functions
	if len(functions) == 0 {
		return &ModuleError{Reason: "no function: its manifest lists none", Hint: "register one with the SDK"}
	}
	if m.signature.ABI == ABIWASI {
		if len(functions) > 1 {
			return &ModuleError{
				Reason: fmt.Sprintf("its manifest lists %d functions, and a command has one", len(functions)),
				Hint:   "build it with -buildmode=c-shared",
			}
		}
		m.bind(functions[0], abi.ExportStart)
		return nil
	}
	var missing []string
	for _, f := range functions {
		switch {
		case form.exportType(f.Name) == functionShape:
			m.bind(f, f.Name)
		case form.exportType(abi.ExportInvoke) == functionShape:
			m.bind(f, abi.ExportInvoke)
		default:
			missing = append(missing, f.Name)
		}
	}
	if len(missing) > 0 {
		return &ModuleError{
			Reason: fmt.Sprintf("its manifest lists %q, which no export of type %s serves", missing, functionShape),
			Hint:   meant(form, missing[0]) + "export them, or the dispatcher " + abi.ExportInvoke,
		}
	}
	return nil
}

// meant begins a hint on a function that is not there: what is near it, or has
// its name and another type.
func meant(form *shape, function string) string {
	if t := form.exportType(function); t != "" {
		return fmt.Sprintf("%s is exported with the type %s; ", function, t)
	}
	if near := suggest.Nearest(function, plainFunctions(form)); near != "" {
		return fmt.Sprintf("did you mean %q? ", near)
	}
	return ""
}

func (m *module) bind(f abi.ManifestFunction, export string) {
	m.signature.Functions = append(m.signature.Functions, run.FunctionSignature{
		Name: f.Name, Description: f.Description, Input: f.Input, Output: f.Output, Config: f.Config,
	})
	m.exports[f.Name] = export
}

// unlisted is the exports that could be functions but are not in the manifest.
func (m *module) unlisted() []string {
	if m.manifest == nil || m.signature.ABI != ABIFlowhost {
		return nil
	}
	form := m.image.form
	return slices.DeleteFunc(plainFunctions(&form), func(name string) bool {
		_, listed := m.exports[name]
		return listed
	})
}

func describing(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, manifestTimeout, run.ErrDeadline)
}
