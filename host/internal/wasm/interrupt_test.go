package wasm

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
)

const (
	testUnits = 100_000
	testDepth = 1_000
)

var errUnwound = errors.New("unwound")

// sandbox is a runtime for plain and rewritten guests.
type sandbox struct {
	wazero.Runtime
	units      uint64         // that an interrupt gives to the guest
	patience   int            // how many interrupts there may be; 0: any number
	interrupts map[uint32]int // by the reason why

	guest  api.Module // that was interrupted last, and its units
	global api.MutableGlobal
}

func newSandbox(t testing.TB, config wazero.RuntimeConfig) *sandbox {
	t.Helper()
	ctx := context.Background()
	s := &sandbox{Runtime: wazero.NewRuntimeWithConfig(ctx, config), units: testUnits, interrupts: map[uint32]int{}}
	t.Cleanup(func() { s.Close(ctx) })
	_, err := s.NewHostModuleBuilder(SandboxModule).NewFunctionBuilder().
		WithGoModuleFunction(api.GoModuleFunc(s.interrupt), []api.ValueType{api.ValueTypeI32}, nil).
		Export(ImportInterrupt).Instantiate(ctx)
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.NewHostModuleBuilder("env").NewFunctionBuilder().
		WithFunc(func(n uint32) uint32 { return n*3 + 1 }).Export("triple").Instantiate(ctx)
	if err != nil {
		t.Fatal(err)
	}
	wasi_snapshot_preview1.MustInstantiate(ctx, s)
	return s
}

func (s *sandbox) interrupt(_ context.Context, guest api.Module, stack []uint64) {
	why := api.DecodeU32(stack[0])
	s.interrupts[why]++
	if why == InterruptGrown {
		return
	}
	if why == InterruptDepth || s.interrupts[why] == s.patience {
		panic(errUnwound)
	}
	if s.guest != guest {
		s.guest, s.global = guest, mutable(guest, ExportUnits)
	}
	s.global.Set(s.units)
}

func mutable(guest api.Module, global string) api.MutableGlobal {
	return guest.ExportedGlobal(global).(api.MutableGlobal)
}

// instance makes an instance of a module.
func (s *sandbox) instance(t testing.TB, binary []byte) api.Module {
	t.Helper()
	guest, err := s.InstantiateWithConfig(context.Background(), binary,
		wazero.NewModuleConfig().WithName("").WithStartFunctions("_initialize"))
	if err != nil {
		t.Fatal(err)
	}
	return guest
}

// begin makes an instance of a rewritten module, as its host does.
func (s *sandbox) begin(ctx context.Context, r *Rewritten) (api.Module, error) {
	guest, err := s.InstantiateWithConfig(ctx, r.Binary, wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err != nil {
		return nil, err
	}
	if len(r.Data) > 0 {
		memory, _ := guest.Memory().Read(0, guest.Memory().Size())
		if err := r.Data.Lay(ctx, memory); err != nil {
			return nil, err
		}
	}
	for _, export := range [...]string{ExportStart, "_initialize"} {
		if f := guest.ExportedFunction(export); f != nil {
			if _, err := f.Call(ctx); err != nil {
				return nil, err
			}
		}
	}
	return guest, nil
}

// rewrite rewrites a module with the units and depth of tests.
func rewrite(t testing.TB, binary []byte) *Rewritten {
	t.Helper()
	m, err := Decode(binary, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return m.Rewrite(RewriteOptions{Units: testUnits, Depth: testDepth})
}

// rewrittenGuest is an instance of the rewritten module.
func rewrittenGuest(t testing.TB, binary []byte) (*sandbox, api.Module) {
	t.Helper()
	s := newSandbox(t, wazero.NewRuntimeConfigCompiler())
	guest, err := s.begin(context.Background(), rewrite(t, binary))
	if err != nil {
		t.Fatal(err)
	}
	return s, guest
}

// eachEngine runs a test on all engines.
func eachEngine(t *testing.T, test func(t *testing.T, config wazero.RuntimeConfig)) {
	for name, config := range map[string]wazero.RuntimeConfig{
		"compiler": wazero.NewRuntimeConfigCompiler(), "interpreter": wazero.NewRuntimeConfigInterpreter(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, config)
		})
	}
}

// twins is a plain instance and a rewritten one that are to do the same.
type twins struct {
	*sandbox
	plain, rewritten api.Module
	globals          []Global
}

func newTwins(t testing.TB, config wazero.RuntimeConfig, binary []byte) *twins {
	t.Helper()
	s := newSandbox(t, config)
	r := rewrite(t, binary)
	guest, err := s.begin(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	return &twins{s, s.instance(t, binary), guest, r.Globals}
}

// call calls an export of both, and gives what they return and the kind of their
// trap. Afterwards they must be in the same state.
func (w *twins) call(t testing.TB, export string, args ...uint64) (results []uint64, trap string) {
	t.Helper()
	results, trap = outcome(w.plain, export, args)
	got, gotTrap := outcome(w.rewritten, export, args)
	if !slices.Equal(got, results) || gotTrap != trap {
		t.Fatalf("%s(%v): %v %q, plain %v %q", export, args, got, gotTrap, results, trap)
	}
	if depth := mutable(w.rewritten, ExportDepth); trap != "" {
		depth.Set(testDepth) // as the host does
	} else if depth.Get() != testDepth {
		t.Fatalf("%s(%v): the depth is %d afterwards", export, args, int32(depth.Get()))
	}
	w.compare(t)
	return results, trap
}

// compare compares memory and the globals that the plain module exports.
func (w *twins) compare(t testing.TB) {
	t.Helper()
	if plain := w.plain.ExportedMemory("memory"); plain != nil {
		want, _ := plain.Read(0, plain.Size())
		got, ok := w.rewritten.Memory().Read(0, w.rewritten.Memory().Size())
		if !ok || !bytes.Equal(got, want) {
			t.Fatal("the memories differ")
		}
	}
	for _, name := range []string{"g0", "g1", "g2"} {
		if g := w.plain.ExportedGlobal(name); g != nil && g.Get() != w.rewritten.ExportedGlobal(name).Get() {
			t.Fatalf("global %s is %d, plain %d", name, w.rewritten.ExportedGlobal(name).Get(), g.Get())
		}
	}
}

// outcome calls an export. The trap is the first line of wazero's error.
func outcome(guest api.Module, export string, args []uint64) (results []uint64, trap string) {
	f := guest.ExportedFunction(export)
	results, err := f.Call(context.Background(), args...)
	if err != nil {
		trap, _, _ = strings.Cut(err.Error(), "\n")
		return nil, trap
	}
	for i, typ := range f.Definition().ResultTypes() {
		if typ == api.ValueTypeI32 {
			results[i] = uint64(api.DecodeU32(results[i])) // the rest is not defined
		}
	}
	return results, ""
}

// exports is the names of all exports but the globals of the host.
func exports(m wazero.CompiledModule) []string {
	return slices.Sorted(maps.Keys(m.ExportedFunctions()))
}
