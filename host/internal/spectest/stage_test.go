package spectest

import (
	"context"
	"errors"
	"fmt"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/flowhost/flowhost/host/internal/wasm"
)

const (
	// quantum is so small that guests are interrupted again and again, wherever
	// they can be.
	quantum  = 50
	maxDepth = 5_000
)

var (
	errTooDeep  = errors.New("too deep")
	errRefused  = errors.New("no valid module")
	errUnlinked = errors.New("no instance can be made")
)

// rewrite is what happens to a module that [wasm.Decode] accepts.
func rewrite(m *wasm.Module) *wasm.Rewritten {
	return m.Rewrite(wasm.RewriteOptions{Units: quantum, Depth: maxDepth})
}

// stage is where one script runs: a runtime, with the instances that the script
// makes. It belongs to one goroutine.
type stage struct {
	runtime    wazero.Runtime
	rewritten  bool
	registered map[string]api.Module
	instances  []api.Module
	interrupts int
}

func newStage(ctx context.Context, config wazero.RuntimeConfig, rewritten bool) (*stage, error) {
	s := &stage{
		runtime:   wazero.NewRuntimeWithConfig(ctx, config.WithCoreFeatures(api.CoreFeaturesV2)),
		rewritten: rewritten, registered: map[string]api.Module{},
	}
	_, err := s.runtime.NewHostModuleBuilder(wasm.SandboxModule).NewFunctionBuilder().
		WithGoModuleFunction(api.GoModuleFunc(s.interrupt), []api.ValueType{api.ValueTypeI32}, nil).
		Export(wasm.ImportInterrupt).Instantiate(ctx)
	if err != nil {
		return nil, err
	}
	s.registered["spectest"], err = s.runtime.Instantiate(ctx, environment())
	return s, err
}

// interrupt is what a rewritten guest calls.
func (s *stage) interrupt(_ context.Context, guest api.Module, stack []uint64) {
	s.interrupts++
	if api.DecodeU32(stack[0]) == wasm.InterruptDepth {
		panic(errTooDeep)
	}
	set(guest, wasm.ExportUnits, quantum)
}

func set(guest api.Module, global string, value uint64) {
	if g, ok := guest.ExportedGlobal(global).(api.MutableGlobal); ok {
		g.Set(value)
	}
}

// instantiate makes an instance, without a name: scripts give names later on. It
// fails with errRefused or errUnlinked.
func (s *stage) instantiate(ctx context.Context, binary []byte) (api.Module, error) {
	form := &wasm.Rewritten{Binary: binary}
	if s.rewritten {
		decoded, err := wasm.Decode(binary, wasm.Options{})
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errRefused, err)
		}
		form = rewrite(decoded)
	}
	code, err := s.runtime.CompileModule(ctx, form.Binary)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errRefused, err)
	}
	ctx = experimental.WithImportResolver(ctx, func(name string) api.Module { return s.registered[name] })
	instance, err := s.runtime.InstantiateModule(ctx, code, wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err == nil {
		s.instances = append(s.instances, instance)
		err = begin(ctx, instance, form)
	}
	if err != nil {
		s.recover()
		return nil, fmt.Errorf("%w: %w", errUnlinked, err)
	}
	return instance, nil
}

// begin does what the rewrite leaves to the host.
func begin(ctx context.Context, instance api.Module, form *wasm.Rewritten) error {
	if len(form.Data) > 0 {
		memory, _ := instance.Memory().Read(0, instance.Memory().Size())
		if err := form.Data.Lay(ctx, memory); err != nil {
			return err
		}
	}
	if start := instance.ExportedFunction(wasm.ExportStart); start != nil {
		_, err := start.Call(ctx)
		return err
	}
	return nil
}

// call calls an exported function.
func (s *stage) call(ctx context.Context, guest api.Module, name string, arguments []uint64) ([]uint64, error) {
	results, err := guest.ExportedFunction(name).Call(ctx, arguments...)
	if err != nil {
		s.recover()
	}
	return results, err
}

// recover does what a host does after a guest was unwound: those of its
// functions that were being called have not counted their end.
func (s *stage) recover() {
	for _, guest := range s.instances {
		set(guest, wasm.ExportDepth, maxDepth)
	}
}
