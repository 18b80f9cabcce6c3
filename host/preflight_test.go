package host_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/flowhost/flowhost/host"
	"github.com/flowhost/flowhost/host/internal/wasm"
	"github.com/flowhost/flowhost/run"
)

// TestHostileModulesEndNothing is not parallel: it counts what is allocated
// meanwhile. wazero alone would not survive most of these modules.
func TestHostileModulesEndNothing(t *testing.T) {
	many := uleb(1<<32 - 1)
	raw := func(id byte, content ...[]byte) []byte {
		body := concat(content...)
		return concat([]byte("\x00asm\x01\x00\x00\x00"), []byte{id}, uleb(uint64(len(body))), body)
	}
	const secTable, secElement, secData, secDataCount = 4, 9, 11, 12
	tests := []struct {
		name           string
		module         []byte
		reason, option string
	}{
		{"decode bomb of types", raw(secType, many), "the type section, byte 0xa: there are 4294967295 types", "Types"},
		{"decode bomb of parameters", raw(secType, []byte{1, 0x60}, many), "the type section", "Parameters"},
		{"decode bomb of imports", raw(secImport, many), "the import section", "Imports"},
		{"decode bomb of tables", raw(secTable, many), "the table section", "Tables"},
		{"decode bomb of globals", raw(secGlobal, many), "the global section", "Globals"},
		{"decode bomb of exports", raw(secExport, many), "the export section", "Exports"},
		{"decode bomb of elements", raw(secElement, []byte{1, 0, opI32Const, 0, opEnd}, many), "the element section", "Elements"},
		{"decode bomb of code", raw(secCode, many), "the code section", "Functions"},
		{"decode bomb of data", raw(secDataCount, many), "the data count section", "DataSegments"},
		{"tables of 2^27 elements", raw(secTable, []byte{4}, bytes.Repeat(concat([]byte{0x70, 0}, uleb(1<<27)), 4)), "start with 134217728 elements", "TableMinimum"},
		{"body that compiles for a minute", task(bytes.Repeat([]byte{opI32Const, 0, 0x04, 0x40, 0x01, opEnd}, 1100<<10/6)...).bytes(), "function 0 is 1126400 bytes long and the limit is 524288", "FunctionBody"},
		{"deep nesting", task(concat(bytes.Repeat([]byte{opLoop, noBlockType}, 5_000), bytes.Repeat([]byte{opEnd}, 5_000), []byte{opI32Const, 0})...).bytes(), "function 0 nests 4001 blocks", "Nesting"},
	}
	h := newHost(t, host.Config{})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := writeFile(t, "plugin.wasm", tt.module)
			var err error
			used := allocated(func() { _, err = h.Inspect(t.Context(), path) })
			fault, ok := errors.AsType[*host.ModuleError](err)
			if !ok || fault.Path != path || !strings.Contains(fault.Reason, tt.reason) || !strings.HasSuffix(fault.Hint, "Preflight."+tt.option) {
				t.Errorf("error %v, want %q and a hint to %s", err, tt.reason, tt.option)
			}
			if bound := uint64(8*len(tt.module) + 256<<10); used > bound {
				t.Errorf("%d bytes were allocated for a module of %d", used, len(tt.module))
			}
		})
	}
}

func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestHarmfulNameSectionIsNotSeenByWazero(t *testing.T) {
	t.Parallel()
	// It announces 2^32-1 names of functions, and of locals of function 0.
	module := withCustomSection(noop().bytes(), "name", "\x01\x05\xff\xff\xff\xff\x0f\x02\x07\x01\x00\xff\xff\xff\xff\x0f")
	h := newHost(t, host.Config{})
	digest := loadBytes(t, h, module)
	if digest != digestOf(module) {
		t.Errorf("digest %s, which is not that of the file", digest)
	}
	wantOutput(t, invoke(t, h, callOf(digest, "", "1")), "null")
}

func TestTablesGrowToTheirLimitOnly(t *testing.T) {
	t.Parallel()
	h := newHost(t, host.Config{Preflight: host.PreflightLimits{TableMaximum: 10}})
	// A table of one element without a maximum; the function returns
	// table.grow(null, n).
	grow := func(n byte) []byte {
		p := task(0xd0, 0x70, opI32Const, n, 0xfc, 15, 0)
		module := p.bytes()
		at := bytes.Index(module, []byte{secMemory, 3, 1, 0, 1})
		return concat(module[:at], []byte{4, 4, 1, 0x70, 0, 1}, module[at:])
	}
	wantFailure(t, invoke(t, h, callOf(loadBytes(t, h, grow(9)), "", "1")), run.OutcomeFailed, "status_1")
	wantFailure(t, invoke(t, h, callOf(loadBytes(t, h, grow(10)), "", "1")), run.OutcomeFailed, "status_-1")
}

// TestGuestsPassThePreflightWithRoom holds real programs to half of each
// default, so that programs of twice their size pass too.
func TestGuestsPassThePreflightWithRoom(t *testing.T) {
	t.Parallel()
	half := wasm.Limits{
		Types: 5_000, Parameters: 64, Imports: 5_000, Exports: 5_000, NameBytes: 512 << 10, Globals: 5_000, Tables: 4, TableMinimum: 1 << 15,
		TypeValues: 25_000, Functions: 50_000, FunctionBody: 256 << 10, Locals: 2_500, ModuleLocals: 500_000, Nesting: 2_000, Operands: 1 << 17,
		DataSegments: 125_000, ElementSegments: 5_000, Elements: 50_000,
	}
	for _, name := range []string{"tasks", "dispatcher", "command"} {
		built, err := os.ReadFile(guest(t, name))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := wasm.Decode(built, wasm.Options{Limits: half}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := reflect.TypeFor[wasm.Limits]().NumField(); n != 19 {
		t.Errorf("there are %d limits, and this test knows 19", n)
	}
}

func FuzzPreflight(f *testing.F) {
	built, err := os.ReadFile(guest(f, "command"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(built[:2<<10])
	f.Add(importedGlobal())
	for _, p := range []program{
		noop(), task(opUnreachable), {pages: 1}, {noMemory: true, functions: noop().functions},
		task(opLoop, noBlockType, opI32Const, 1, 0x0d, 0, opEnd, opI32Const, 0),
		task(opI32Const, 0, 0xfd, 0x0f, 0xfd, 0x80, 0x01, 0xfd, 0x53), // splat, abs, any_true
		task(0x02, i32, opI32Const, 1, opI32Const, 0, 0x0e, 1, 0, 1, opEnd),
	} {
		f.Add(p.bytes())
	}
	header := "\x00asm\x01\x00\x00\x00"
	f.Add([]byte(header + "\x00\x09\x04name\x01\x02\x03\x04"))
	f.Add([]byte(header + "\x02\x1c\x05\x01a\x01f\x00\x00\x01a\x01t\x01\x70\x00\x01\x01a\x01m\x02\x01\x01\x02\x01a\x01g\x03\x7f\x00"))
	f.Add([]byte(header + "\x04\x08\x02\x70\x00\x05\x6f\x01\x01\x02\x09\x0d\x02\x00\x41\x00\x0b\x00\x05\x70\x01\xd0\x70\x0b\x0b\x0b"))
	f.Add([]byte(header + "\x05\x03\x01\x00\x01\x0c\x01\x02\x0b\x0c\x02\x00\x41\x00\x0b\x03abc\x01\x01x"))

	ctx := context.Background()
	interpreter := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(api.CoreFeaturesV2))
	f.Cleanup(func() { interpreter.Close(ctx) })
	f.Fuzz(func(t *testing.T, module []byte) {
		var m *wasm.Module
		var err error
		used := allocated(func() { m, err = wasm.Decode(module, wasm.Options{}) })
		if bound := uint64(32*len(module) + 1<<20); used > bound {
			t.Fatalf("%d bytes were allocated for a module of %d", used, len(module))
		}
		if err != nil || len(module) > 4<<10 {
			return
		}
		core := m.Rewrite(wasm.RewriteOptions{}).Binary
		used = allocated(func() {
			if code, err := interpreter.CompileModule(ctx, core); err == nil { // whatever it refuses is fine
				code.Close(ctx)
			}
		})
		if used > 256<<20 {
			t.Fatalf("compiling a module of %d bytes allocates %d", len(module), used)
		}
	})
}

// BenchmarkPreflight is of a whole Go program. BenchmarkInspect/cold is what
// compiling the same one takes.
func BenchmarkPreflight(b *testing.B) {
	built, err := os.ReadFile(guest(b, "tasks"))
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(built)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := wasm.Decode(built, wasm.Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkForecast is of the same program, rewritten. It is made when the cache
// has no native code.
func BenchmarkForecast(b *testing.B) {
	built, err := os.ReadFile(guest(b, "tasks"))
	if err != nil {
		b.Fatal(err)
	}
	r := mustRewrite(b, built)
	b.SetBytes(int64(len(r.Binary)))
	for b.Loop() {
		if f := r.Forecast(); f.Work == 0 {
			b.Fatal("nothing is forecast")
		}
	}
}
