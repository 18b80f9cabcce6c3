package host

import (
	"errors"

	"github.com/flowhost/flowhost/host/internal/wasm"
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
