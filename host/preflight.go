package host

import (
	"context"
	"errors"

	"github.com/flowhost/flowhost/host/internal/known"
	"github.com/flowhost/flowhost/host/internal/wasm"
	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/sdk/abi"
)

// PreflightLimits bounds a module in each of its dimensions: types, functions,
// tables, bytes of one function and so on. The zero value is the defaults, which
// leave room for all guests that were seen.
type PreflightLimits = wasm.Limits

// preflight walks every byte of a module.
func preflight(binary []byte, limits PreflightLimits) (*wasm.Module, *ModuleError) {
	walked, err := wasm.Decode(binary, wasm.Options{
		Limits: limits, Custom: abi.ManifestSection, CustomSize: abi.MaxManifest,
		Export: abi.ExportManifest,
	})
	if fault, ok := errors.AsType[*wasm.Error](err); ok {
		return nil, &ModuleError{Reason: fault.Error(), Hint: fault.Hint}
	}
	return walked, nil
}

// check states what a module offers. It checks all but whether the module can be compiled
// within the budget, and, unless that is asked for, whether the code of its functions is
// valid; except that it compiles a module which states its manifest by a call. It fails
// with a *ModuleError that has no path yet, or with the cause with which ctx ended.
func (h *Host) check(ctx context.Context, binary []byte, code bool) (run.Signature, error) {
	digest := digestOf(binary)
	if facts, ok := h.facts(digest); ok && (facts.Code || !code) {
		return facts.Signature, nil
	}
	facts := known.Facts{Size: int64(len(binary)), Code: code}
	var err error
	facts.Signature, err = h.examine(ctx, digest, binary, code)
	if errors.Is(err, errUndescribed) {
		facts.Code, facts.Within = true, h.within()
		facts.Signature, err = h.prepared(ctx, binary)
	}
	if err == nil {
		h.known.Keep(&facts)
	}
	return facts.Signature, err
}

// errUndescribed is for a module that has to run to state its manifest.
var errUndescribed = errors.New("only a call states the manifest of the module")

// examine checks a module of which nothing is known, on all processors if there are many:
// whoever loads flows waits for it. Validating code takes two thirds of the time.
func (h *Host) examine(ctx context.Context, digest string, binary []byte, code bool) (run.Signature, error) {
	if err := h.sandbox.checks.Acquire(ctx, 1); err != nil {
		return run.Signature{}, context.Cause(ctx)
	}
	defer h.sandbox.checks.Release(1)
	walked, fault := preflight(binary, h.sandbox.limits)
	if fault != nil {
		return run.Signature{}, fault
	}
	if code {
		if err := h.sandbox.validate(walked); err != nil {
			return run.Signature{}, err
		}
	}
	form := shapeOf(len(binary), &walked.Interface, walked.Custom)
	m := newModule(digest, nil)
	if m.signature.ABI, fault = inferABI(&form, h.sandbox.offered); fault != nil {
		return run.Signature{}, fault
	}
	if form.manifest == nil && form.exportType(abi.ExportManifest) == functionShape {
		return run.Signature{}, errUndescribed
	}
	if fault := m.bindAll(&form, form.manifest, ManifestSection); fault != nil {
		return run.Signature{}, fault
	}
	return m.signature, nil
}

// prepared states what a module offers that is compiled for it.
func (h *Host) prepared(ctx context.Context, binary []byte) (run.Signature, error) {
	m, err := h.moduleOf(ctx, binary)
	if err != nil {
		return run.Signature{}, err
	}
	defer h.modules.release(m)
	if m.fault != nil {
		return run.Signature{}, m.fault
	}
	return m.signature, nil
}
