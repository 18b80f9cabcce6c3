package host

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/sys"

	"github.com/flowhost/flowhost/sdk/abi"
)

// freshImage is a compiled module. Each call gets an instance of its own that
// is thrown away afterwards, whatever happened in it.
type freshImage struct {
	runtime wazero.Runtime
	code    wazero.CompiledModule
	form    shape
}

func (i *freshImage) shape() shape { return i.form }

func (i *freshImage) run(ctx context.Context, inv *invocation, export string) (status int32, err error) {
	defer func() {
		// wazero recovers what happens while a guest runs, but not while it
		// makes an instance, where an allocator that refuses is a panic.
		if r := recover(); r != nil {
			err = newInstanceTrap(inv, r)
		}
	}()
	ctx = experimental.WithMemoryAllocator(ctx, inv.memory)
	ctx = context.WithValue(ctx, invocationKey{}, inv)
	instance, err := i.runtime.InstantiateModule(ctx, i.code, instanceConfig(ctx, inv))
	if err != nil {
		return 0, guestError(ctx, err)
	}
	defer instance.Close(ctx) // frees what it has; there is nobody to tell of an error
	if export != abi.ExportStart {
		if _, err := callExport(ctx, instance, abi.ExportInit); err != nil {
			return 0, err
		}
	}
	return callExport(ctx, instance, export)
}

// callExport calls an export, if there is one.
func callExport(ctx context.Context, instance api.Module, name string) (int32, error) {
	function := instance.ExportedFunction(name)
	if function == nil {
		return 0, nil
	}
	results, err := function.Call(ctx)
	if err != nil {
		return 0, guestError(ctx, err)
	}
	if len(results) == 0 {
		return 0, nil
	}
	return api.DecodeI32(results[0]), nil
}

// instanceConfig grants what every guest has: its streams, its own clocks and
// random numbers, and a name. wazero denies all that is not named here.
func instanceConfig(ctx context.Context, inv *invocation) wazero.ModuleConfig {
	return wazero.NewModuleConfig().
		WithName(""). // anonymous: any number of them at a time
		WithStartFunctions().
		WithArgs(inv.function).
		WithStdin(inv.stdin()).
		WithStdout(inv.stdout).
		WithStderr(inv.stderr).
		WithRandSource(newRandom(inv.call)).
		WithWalltime(inv.clock.walltime, sys.ClockResolution(clockStep)).
		WithNanotime(inv.clock.nanotime, sys.ClockResolution(clockStep)).
		WithNanosleep(func(ns int64) { inv.clock.sleep(ctx, ns) })
}

// guestError turns an error of wazero into one of the sandbox's.
func guestError(ctx context.Context, err error) error {
	var exit *sys.ExitError
	switch {
	case errors.Is(err, errInterrupted):
		return errInterrupted
	case errors.Is(err, errOutputSize):
		return errOutputSize
	case errors.As(err, &exit):
		if ctx.Err() != nil && isContextExit(exit) {
			return errInterrupted
		}
		return &exitError{exit.ExitCode()}
	}
	return newTrap(err)
}

// isContextExit reports whether wazero closed the instance because the context
// had ended. A guest can exit with the same numbers by itself.
func isContextExit(exit *sys.ExitError) bool {
	return exit.ExitCode() == sys.ExitCodeContextCanceled || exit.ExitCode() == sys.ExitCodeDeadlineExceeded
}

// newTrap takes apart what wazero says: the reason, then the guest's stack, and
// when a host function broke, the host's stack.
func newTrap(err error) *trapError {
	text, hostTrace, _ := strings.Cut(err.Error(), "Go runtime stack trace:")
	reason, trace, _ := strings.Cut(text, "\n")
	_, trace, _ = strings.Cut(trace, "\n") // without the headline
	return &trapError{
		reason:    strings.TrimPrefix(reason, "wasm error: "),
		trace:     strings.ReplaceAll(strings.TrimSpace(trace), "\t", ""),
		hostTrace: strings.TrimSpace(hostTrace),
	}
}

// newInstanceTrap is a panic of wazero. Memory that was refused explains it.
func newInstanceTrap(inv *invocation, recovered any) *trapError {
	trap := &trapError{reason: fmt.Sprintf("no instance can be made: %v", recovered)}
	if !inv.memory.refused {
		trap.hostTrace = string(debug.Stack())
	}
	return trap
}
