package sdk_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/flowhost/flowhost/sdk/abi"
)

// wasmHost is the other side of flowhost:task/v1, as small as it can be.
type wasmHost struct {
	fields       map[abi.Field]string
	timeLeft     []int64 // answers in order, the last one repeats; none: no deadline
	stopAfter    int     // should_stop says 250 ms from then on; 0: never
	outputLimit  int
	output, fail string
	log          []string
	asked        int
}

// exports gives the host functions by name, with Go types that wazero maps to
// the core types of the ABI.
func (h *wasmHost) exports() map[string]any {
	text := func(m api.Module, ptr, length uint32) string {
		data, ok := m.Memory().Read(ptr, length)
		if !ok {
			panic("the guest gave a range outside of its memory")
		}
		return string(data)
	}
	return map[string]any{
		abi.ImportSize: func(_ context.Context, _ api.Module, field int32) int32 {
			return int32(len(h.fields[abi.Field(field)]))
		},
		abi.ImportRead: func(_ context.Context, m api.Module, field int32, ptr, capacity uint32) int32 {
			data := h.fields[abi.Field(field)]
			if len(data) > int(capacity) {
				return -int32(abi.E2BIG)
			}
			m.Memory().WriteString(ptr, data)
			return int32(len(data))
		},
		abi.ImportOutput: func(_ context.Context, m api.Module, ptr, length uint32) int32 {
			if h.outputLimit > 0 && int(length) > h.outputLimit {
				return -int32(abi.E2BIG)
			}
			h.output = text(m, ptr, length)
			return 0
		},
		abi.ImportFail: func(_ context.Context, m api.Module, ptr, length uint32) int32 {
			h.fail = text(m, ptr, length)
			return 0
		},
		abi.ImportLog: func(_ context.Context, m api.Module, level int32, msg, msgLen, fields, fieldsLen uint32) int32 {
			line := []string{abi.Level(level).String(), text(m, msg, msgLen), text(m, fields, fieldsLen)}
			h.log = append(h.log, strings.Join(line, "|"))
			return 0
		},
		abi.ImportOpStart: func(_ context.Context, _ api.Module, _, _, _, _, _, _ uint32) int32 { return -int32(abi.EINVAL) },
		abi.ImportOpWait:  func(_ context.Context, _ api.Module, _, _, _ uint32) int32 { return -int32(abi.EINVAL) },
		abi.ImportOpRead:  func(_ context.Context, _ api.Module, _, _, _, _, _ uint32) int32 { return -int32(abi.EINVAL) },
		abi.ImportOpClose: func(_ context.Context, _ api.Module, _ uint32) int32 { return -int32(abi.EBADF) },
		abi.ImportTimeLeft: func(context.Context, api.Module) int64 {
			if len(h.timeLeft) == 0 {
				return -1
			}
			left := h.timeLeft[0]
			if len(h.timeLeft) > 1 {
				h.timeLeft = h.timeLeft[1:]
			}
			return left
		},
		abi.ImportShouldStop: func(context.Context, api.Module) int32 {
			h.asked++
			if h.stopAfter > 0 && h.asked >= h.stopAfter {
				return 250
			}
			return 0
		},
	}
}

// guestModule is a built guest. Its cache makes the tests compile it once.
type guestModule struct {
	wasm  []byte
	cache wazero.CompilationCache
}

// run calls an export of the guest in a fresh instance and returns what it
// returned, what it wrote on stderr and the trap, if any.
func (h *wasmHost) run(t *testing.T, module guestModule, export string) (status uint64, stderr string, trap error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	runtime := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfig().WithCompilationCache(module.cache))
	defer runtime.Close(ctx)
	wasi_snapshot_preview1.MustInstantiate(ctx, runtime)
	imports := runtime.NewHostModuleBuilder(abi.Module)
	for name, fn := range h.exports() {
		imports.NewFunctionBuilder().WithFunc(fn).Export(name)
	}
	if _, err := imports.Instantiate(ctx); err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	config := wazero.NewModuleConfig().WithStartFunctions(abi.ExportInit).WithStderr(&errs)
	instance, err := runtime.InstantiateWithConfig(ctx, module.wasm, config)
	if err != nil {
		t.Fatal(err)
	}
	results, err := instance.ExportedFunction(export).Call(ctx)
	if err != nil {
		return 0, errs.String(), err
	}
	return results[0], errs.String(), nil
}

func call(function, input string) *wasmHost {
	return &wasmHost{fields: map[abi.Field]string{
		abi.FieldFunction: function,
		abi.FieldInput:    input,
		abi.FieldConfig:   "null",
		abi.FieldIdentity: identityJSON,
	}}
}

const identityJSON = `{"flow":"f","run":"r","task":"t","key":"k","attempt":2,"idempotency_key":"r/t/k","scheduled":"2026-02-03T04:05:06.000000007Z"}`

// TestGuest builds testdata/guest as an author would and calls it in a wasm
// runtime.
func TestGuest(t *testing.T) {
	t.Parallel()
	module := buildGuest(t)
	tests := map[string]struct {
		host   *wasmHost
		status uint64
		output string
		fail   string
		log    []string
	}{
		"input and output": {host: call("main", `{"text":"a <b> & ü","unknown":[1]}`), output: `{"text":"A <B> & Ü"}`},
		"main function":    {host: call("", `{"text":"x"}`), output: `{"text":"X"}`},
		"large input": {
			host:   call("main", `{"text":"`+strings.Repeat("x", 1<<20)+`"}`),
			output: `{"text":"` + strings.Repeat("X", 1<<20) + `"}`,
		},
		"input does not fit": {
			host: call("main", `{"text":1}`), status: 1,
			fail: `{"code":"input","message":"input.text: a string is expected, not number","retryable":false}`,
		},
		"output over the limit": {
			host: limited(call("main", `{"text":"0123456789"}`), 10), status: 1,
			fail: `{"code":"output_size","message":"the output is over its limit","retryable":false}`,
		},
		"no such function": {
			host: call("lower", `{}`), status: 1,
			fail: `{"code":"function","message":"the plugin has no function \"lower\"; it has: main, configured, identity, fail, log, stop, wait, crash","retryable":false}`,
		},
		"no config": {host: call("configured", `null`), output: `{"text":"default"}`},
		"config":    {host: configured(call("configured", `null`), `{"text":"given"}`), output: `{"text":"given"}`},
		"config does not fit": {
			host: configured(call("configured", `null`), `[]`), status: 1,
			fail: `{"code":"config","message":"config: an object is expected, not array","retryable":false}`,
		},
		"identity": {host: call("identity", `{}`), output: identityJSON},
		"fail": {
			host: call("fail", `{"text":"<busy>"}`), status: 1,
			fail: `{"code":"busy","message":"<busy>","retryable":true,"retry_after_ms":1500,"details":{"text":"<busy>"}}`,
		},
		"log": {
			host: call("log", `{"text":"careful"}`), output: `{}`,
			log: []string{`info|plain|`, `warn|careful|{"a":1,"g":{"b":true}}`},
		},
		"canceled": {host: stopped(call("stop", `null`), 100), output: `{"text":"context canceled"}`},
		"waiting":  {host: stopped(call("wait", `null`), 3), output: `{"text":"context canceled, 250ms left"}`},
		"deadline": {
			host:   timed(call("stop", `null`), 20, 10, 0),
			output: `{"text":"context deadline exceeded with a deadline"}`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status, stderr, trap := test.host.run(t, module, abi.ExportInvoke)
			if trap != nil {
				t.Fatalf("%v\n%s", trap, stderr)
			}
			if status != test.status || test.host.output != test.output || test.host.fail != test.fail {
				t.Errorf("status %d\noutput %.200s\nfail %s", status, test.host.output, test.host.fail)
			}
			if diff := cmp.Diff(test.log, test.host.log); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("panic", func(t *testing.T) {
		t.Parallel()
		_, stderr, trap := call("crash", `null`).run(t, module, abi.ExportInvoke)
		if trap == nil || !strings.Contains(stderr, "panic: boom") {
			t.Errorf("trap %v, stderr %q", trap, stderr)
		}
	})
	t.Run("manifest", func(t *testing.T) {
		t.Parallel()
		checkManifest(t, module)
	})
}

func limited(h *wasmHost, limit int) *wasmHost        { h.outputLimit = limit; return h }
func stopped(h *wasmHost, after int) *wasmHost        { h.stopAfter = after; return h }
func timed(h *wasmHost, left ...int64) *wasmHost      { h.timeLeft = left; return h }
func configured(h *wasmHost, config string) *wasmHost { h.fields[abi.FieldConfig] = config; return h }

// checkManifest gives the guest nothing to read: a manifest must not need a
// call.
func checkManifest(t *testing.T, module guestModule) {
	t.Helper()
	h := &wasmHost{}
	if status, stderr, trap := h.run(t, module, abi.ExportManifest); trap != nil || status != 0 {
		t.Fatalf("status %d, %v\n%s", status, trap, stderr)
	}
	var got abi.Manifest
	if err := json.Unmarshal([]byte(h.output), &got); err != nil {
		t.Fatal(err)
	}
	nothing := json.RawMessage(`{"additionalProperties":false,"type":"object"}`)
	preset := json.RawMessage(`{"additionalProperties":false,"properties":{"text":{"type":"string"}},"type":"object","x-any-case":true}`)
	taken := json.RawMessage(`{"additionalProperties":false,"properties":{"text":{"type":"string"}},"required":["text"],"type":"object","x-any-case":true}`)
	text := json.RawMessage(`{"additionalProperties":false,"properties":{"text":{"type":"string"}},"required":["text"],"type":"object"}`)
	identity := json.RawMessage(`{"additionalProperties":false,"properties":{"attempt":{"type":"integer"},"flow":{"type":"string"},"idempotency_key":{"type":"string"},` +
		`"key":{"type":"string"},"run":{"type":"string"},"scheduled":{"format":"date-time","type":"string"},"task":{"type":"string"}},` +
		`"required":["attempt","flow","idempotency_key","run","scheduled","task"],"type":"object"}`)
	want := abi.Manifest{
		ABI: 1, Name: "guest", Version: "1.2.3", Description: "Everything that crosses the border.", Licence: "Apache-2.0",
		Capabilities: []abi.Capability{{Name: "files", Why: "reads <nothing>"}},
		Functions: []abi.ManifestFunction{
			{Name: "main", Description: "Shouts <politely>.", Input: taken, Output: text, Idempotent: true},
			{Name: "configured", Input: nothing, Output: text, Config: preset},
			{Name: "identity", Input: nothing, Output: identity},
			{Name: "fail", Input: taken, Output: nothing},
			{Name: "log", Input: taken, Output: nothing},
			{Name: "stop", Input: nothing, Output: text},
			{Name: "wait", Input: nothing, Output: text},
			{Name: "crash", Input: nothing, Output: nothing},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// buildGuest builds the guest and compiles it, so that parallel tests find it
// in the cache.
func buildGuest(t *testing.T) guestModule {
	t.Helper()
	path := filepath.Join(t.TempDir(), "guest.wasm")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags=-s -w", "-buildmode=c-shared", "-o", path, "./testdata/guest")
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	wasm, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	module := guestModule{wasm: wasm, cache: wazero.NewCompilationCache()}
	ctx := t.Context()
	t.Cleanup(func() { module.cache.Close(context.WithoutCancel(ctx)) })
	runtime := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfig().WithCompilationCache(module.cache))
	if _, err := runtime.CompileModule(ctx, wasm); err != nil {
		t.Fatal(err)
	}
	return module
}
