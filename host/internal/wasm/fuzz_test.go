package wasm

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
)

// FuzzRewrite compares what wazero thinks of a module with what it thinks of the
// rewritten one.
func FuzzRewrite(f *testing.F) {
	f.Add(complete())
	f.Add(shifted())
	f.Add(tight())
	f.Add(fibonacci())
	f.Add(module())
	for seed := range uint64(8) {
		f.Add(randomProgram(seed, nil))
	}
	for _, tt := range hostile {
		if len(tt.module) < 1<<10 {
			f.Add(tt.module)
		}
	}
	f.Fuzz(func(t *testing.T, binary []byte) {
		m, err := Decode(binary, Options{})
		if err != nil || len(binary) > 4<<10 {
			return
		}
		rewritten := m.Rewrite(RewriteOptions{Units: testUnits, Depth: testDepth}).Binary
		plainErr := compile(t, withoutCustom(m))
		if err := compile(t, rewritten); (err == nil) != (plainErr == nil) {
			t.Fatalf("plain: %v\nrewritten: %v", plainErr, err)
		}
	})
}

// withoutCustom is the module without custom sections, which wazero reads badly.
func withoutCustom(m *Module) []byte {
	binary := []byte(header)
	for _, s := range m.sections {
		binary = append(binary, m.binary[s.start:s.end]...)
	}
	return binary
}

// compile compiles a module. A fault within the compiler is an error too.
func compile(t *testing.T, binary []byte) (err error) {
	ctx := context.Background()
	runtime := wazero.NewRuntime(ctx)
	defer runtime.Close(ctx)
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	_, err = runtime.CompileModule(ctx, binary)
	return err
}

// FuzzRewriteRuns runs random programs, plain and rewritten.
func FuzzRewriteRuns(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(seed, []byte{}, uint32(seed))
	}
	f.Fuzz(func(t *testing.T, seed uint64, decisions []byte, arg uint32) {
		runRandomProgram(t, randomProgram(seed, decisions), uint64(arg))
	})
}

// TestRandomPrograms does the same with programs that are always the same.
func TestRandomPrograms(t *testing.T) {
	t.Parallel()
	traps, ends := 0, 0
	for seed := range uint64(150) {
		trapped, ended := runRandomProgram(t, randomProgram(seed, nil), seed)
		traps, ends = traps+trapped, ends+ended
	}
	if traps < 50 || ends < 50 {
		t.Errorf("%d calls trapped and %d ended: one of them is hardly tested", traps, ends)
	}
}

// runRandomProgram calls all functions of a program on all engines, and reports how
// many calls trapped and how many did not.
func runRandomProgram(t *testing.T, binary []byte, arg uint64) (traps, ends int) {
	t.Helper()
	var used []int64
	for _, config := range []wazero.RuntimeConfig{wazero.NewRuntimeConfigCompiler(), wazero.NewRuntimeConfigInterpreter()} {
		w := newTwins(t, config, binary)
		w.units = 40
		mutable(w.rewritten, ExportUnits).Set(w.units)
		for i := 0; ; i++ {
			name := fmt.Sprint("f", i)
			f := w.plain.ExportedFunction(name)
			if f == nil {
				break
			}
			mutable(w.plain, "g2").Set(randomPatience)
			mutable(w.rewritten, "g2").Set(randomPatience)
			if _, trap := w.call(t, name, []uint64{arg & 0xffff_ffff, 7}[:len(f.Definition().ParamTypes())]...); trap == "" {
				ends++
			} else if traps++; !strings.HasPrefix(trap, "wasm error: ") {
				t.Fatalf("%s(%d): %s", name, arg, trap)
			}
		}
		// Not quite the units, as an interrupt forgets those below zero.
		used = append(used, int64(w.interrupts[InterruptUnits])*int64(w.units)-int64(mutable(w.rewritten, ExportUnits).Get()))
		w.Close(context.Background())
	}
	if used[0] != used[1] {
		t.Fatalf("the compiler counted %d units, the interpreter %d", used[0], used[1])
	}
	return traps, ends
}
