package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	extism "github.com/extism/go-sdk"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/flowhost/flowhost/host"
	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/sdk/abi"
)

// caller calls a function of a guest and gives its output.
type caller func(ctx context.Context, function string, input []byte) ([]byte, error)

// way gives the calls of one function. The output is compared with what the first
// of the ways gave.
func (c caller) way(b *testing.B, name, function string, input []byte, want *[]byte) *way {
	first := true
	return &way{name: name, call: func() error {
		output, err := c(b.Context(), function, input)
		if err != nil || !first {
			return err
		}
		first = false
		if *want == nil {
			*want = output
		}
		if !bytes.Equal(bytes.TrimSpace(output), bytes.TrimSpace(*want)) && !isNull(output) {
			return fmt.Errorf("the output is %.80s, want %.80s", output, *want)
		}
		return nil
	}}
}

// isNull reports whether there is no output. flowhost's word for that is null.
func isNull(output []byte) bool { return len(output) == 0 || string(output) == "null" }

// newHost is a host with one module, and calls of it. The host ends with the
// benchmark.
func newHost(b *testing.B, config host.Config, binary []byte) (*host.Host, run.Call) {
	b.Helper()
	config.CompileCommand = compileCommand()
	h, err := host.New(b.Context(), config)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { h.Close(context.Background()) })
	path := filepath.Join(b.TempDir(), "module.wasm")
	if err := os.WriteFile(path, binary, 0o600); err != nil {
		b.Fatal(err)
	}
	signature, err := h.Signature(b.Context(), path)
	if err != nil {
		b.Fatal(err)
	}
	return h, run.Call{
		Run: "01JZZZZZZZZZZZZZZZZZZZZZZZ", Flow: "bench", Task: "call", Attempt: 1,
		Scheduled: time.Date(2026, 3, 29, 1, 30, 0, 0, time.UTC),
		Module:    signature.Digest, Timeout: time.Minute,
	}
}

// flowhost calls by host.Invoke: isolated and interruptible.
func flowhost(b *testing.B, binary []byte) caller {
	h, call := newHost(b, host.Config{}, binary)
	return func(ctx context.Context, function string, input []byte) ([]byte, error) {
		call := call
		call.Function, call.Input = function, json.RawMessage(input)
		result, err := h.Invoke(ctx, call)
		if err == nil && result.Failure != nil {
			err = result.Failure
		}
		return result.Output, err
	}
}

// bare is wazero and nothing else. It serves one call at a time.
type bare struct {
	runtime       wazero.Runtime
	code          wazero.CompiledModule
	input, output []byte
}

// newBare compiles a module. With interruptible it can be stopped in the way that
// wazero has for it.
func newBare(b *testing.B, binary []byte, interruptible bool) *bare {
	b.Helper()
	ctx := context.Background()
	w := &bare{runtime: wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfig().WithCloseOnContextDone(interruptible))}
	b.Cleanup(func() { w.runtime.Close(ctx) })
	wasi_snapshot_preview1.MustInstantiate(ctx, w.runtime)
	module := w.runtime.NewHostModuleBuilder(abi.Module)
	i32 := api.ValueTypeI32
	for name, f := range map[string]struct {
		parameters int
		answer     func(m api.Memory, stack []uint64)
	}{
		abi.ImportSize: {1, func(_ api.Memory, stack []uint64) { stack[0] = uint64(len(w.input)) }},
		abi.ImportRead: {3, func(m api.Memory, stack []uint64) {
			m.Write(api.DecodeU32(stack[1]), w.input)
			stack[0] = uint64(len(w.input))
		}},
		abi.ImportOutput: {2, func(m api.Memory, stack []uint64) {
			view, _ := m.Read(api.DecodeU32(stack[0]), api.DecodeU32(stack[1]))
			w.output = bytes.Clone(view)
			stack[0] = 0
		}},
		abi.ImportFail: {2, func(_ api.Memory, stack []uint64) { stack[0] = 0 }},
		abi.ImportLog:  {5, func(_ api.Memory, stack []uint64) { stack[0] = 0 }},
	} {
		parameters := bytes.Repeat([]byte{i32}, f.parameters)
		module.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(func(_ context.Context, m api.Module, stack []uint64) {
			f.answer(m.Memory(), stack)
		}), parameters, []api.ValueType{i32}).Export(name)
	}
	if _, err := module.Instantiate(ctx); err != nil {
		b.Fatal(err)
	}
	var err error
	if w.code, err = w.runtime.CompileModule(ctx, binary); err != nil {
		b.Fatal(err)
	}
	return w
}

func (w *bare) instance(ctx context.Context) (api.Module, error) {
	return w.runtime.InstantiateModule(ctx, w.code, wazero.NewModuleConfig().WithName("").WithStartFunctions(abi.ExportInit))
}

// fresh calls in an instance of its own each time.
func (w *bare) fresh(ctx context.Context, function string, input []byte) ([]byte, error) {
	w.input, w.output = input, nil
	module, err := w.instance(ctx)
	if err != nil {
		return nil, err
	}
	defer module.Close(ctx)
	_, err = module.ExportedFunction(function).Call(ctx)
	return w.output, err
}

// reused calls in one instance, which sees what earlier calls left behind.
func (w *bare) reused(b *testing.B) caller {
	module, err := w.instance(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	functions := map[string]api.Function{}
	return func(ctx context.Context, name string, input []byte) ([]byte, error) {
		if functions[name] == nil { // looking one up takes longer than calling it
			functions[name] = module.ExportedFunction(name)
		}
		w.input, w.output = input, nil
		_, err := functions[name].Call(ctx)
		return w.output, err
	}
}

// newExtism compiles a plugin with Extism's Go SDK, without a timeout, so that
// nothing can stop its calls, which is how it is fastest.
func newExtism(b *testing.B, binary []byte) *extism.CompiledPlugin {
	b.Helper()
	ctx := context.Background()
	manifest := extism.Manifest{Wasm: []extism.Wasm{extism.WasmData{Data: binary}}}
	plugin, err := extism.NewCompiledPlugin(ctx, manifest, extism.PluginConfig{EnableWasi: true}, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { plugin.Close(ctx) })
	return plugin
}

func extismReused(b *testing.B, compiled *extism.CompiledPlugin) caller {
	plugin, err := compiled.Instance(b.Context(), extism.PluginInstanceConfig{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { plugin.Close(context.Background()) })
	return func(ctx context.Context, function string, input []byte) ([]byte, error) {
		_, output, err := plugin.CallWithContext(ctx, function, input)
		return output, err
	}
}

func extismFresh(compiled *extism.CompiledPlugin) caller {
	return func(ctx context.Context, function string, input []byte) ([]byte, error) {
		plugin, err := compiled.Instance(ctx, extism.PluginInstanceConfig{})
		if err != nil {
			return nil, err
		}
		defer plugin.Close(ctx)
		_, output, err := plugin.CallWithContext(ctx, function, input)
		return output, err
	}
}
