package sdk

import "github.com/flowhost/flowhost/sdk/internal/guest"

// The exports through which the host calls the plugin. They live in the library
// so that an author writes none; names as in abi.ExportInvoke,
// abi.ExportManifest and abi.ExportWarmup.

//go:wasmexport flowhost_invoke
func invoke() int32 { return guest.Registered.Serve(guest.Imports{}) }

//go:wasmexport flowhost_manifest
func manifest() int32 { return guest.Registered.WriteManifest(guest.Imports{}) }

//go:wasmexport flowhost_warmup
func warmup() int32 { return guest.Registered.RunWarmUp(guest.Imports{}) }
