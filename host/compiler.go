package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/flowhost/flowhost/host/internal/compile"
	"github.com/flowhost/flowhost/host/internal/wasm"
)

// CompileArgument is what a program passes to itself as its only argument in
// [Config].CompileCommand, and by which it knows that it has to call [CompileChild].
const CompileArgument = "compile-module"

// CompileChild is the main function of the process that compiles one module, under the
// limits that its parent sets. It reads a job from stdin, leaves native code in the
// cache and returns the process's exit code. It ends the process when stdin ends early,
// as it does when the parent ends.
func CompileChild(ctx context.Context, stdin io.Reader, stderr io.Writer) int {
	return compile.Child(ctx, stdin, stderr)
}

// CachePath is the directory that a host with this [Config.CacheDir] writes to, "" when
// it has none.
func CachePath(dir string) string { return compile.CachePath(dir) }

// The host compiles a module in its own process if the forecast is within these limits:
// there, nothing can interrupt compiling, and memory is not returned afterwards.
const (
	processWork   = 200 * time.Millisecond // of a processor
	processMemory = 128 << 20
)

// ErrCompileBudget is wrapped by the *[ModuleError] of a module that needs more
// to be compiled than [Config] allows.
var ErrCompileBudget = errors.New("compiling it is over the budget")

// fits reports whether compiling needs no child.
func fits(f wasm.Forecast) bool {
	return f.Work <= int64(processWork) && f.Memory <= processMemory
}

// compileInChild lets a child compile a module. It fails with a *ModuleError, or with
// the cause with which ctx ended.
func (s *sandbox) compileInChild(ctx context.Context, module []byte, f *estimate) error {
	if len(s.compiler.Command) == 0 {
		return f.over(fmt.Sprintf("%v of processor time and %s of memory, which a host without a compile command may use", processWork, compile.Megabytes(processMemory)))
	}
	err := s.compiler.Compile(ctx, module)
	if refused, ok := errors.AsType[*compile.RefusedError](err); ok {
		return compileFault(refused)
	}
	if over, ok := errors.AsType[*compile.BudgetError](err); ok {
		return f.over(over.Budget)
	}
	if broken, ok := errors.AsType[*compile.ProcessError](err); ok {
		return &ModuleError{passing: true, Reason: broken.Reason, Hint: broken.Hint}
	}
	return err
}

// Compile leaves native code of the stored module of that digest in the cache, unless it
// is there, so that the module's first call need not wait for it. The host keeps nothing
// of the module in memory unless a call wants it meanwhile. Compile fails with a
// *[ModuleError], with fs.ErrNotExist when the module is not stored, or with the cause with
// which ctx ended. It reports whether there was anything to do.
func (h *Host) Compile(ctx context.Context, digest string) (done bool, err error) {
	if h.known.Compiled(digest) {
		return false, nil
	}
	ctx, leave, err := h.enter(ctx)
	if err != nil {
		return false, err
	}
	defer leave()
	m, err := h.module(ctx, digest, true, func(ctx context.Context) ([]byte, error) { return h.open(ctx, digest) })
	if err != nil {
		return true, locate(err, digest)
	}
	defer h.modules.release(m)
	if m.fault != nil {
		return true, m.fault.at(digest)
	}
	return true, nil
}

// estimate is the forecast of a module, for messages to its author.
type estimate struct {
	wasm.Forecast
	function string // the worst one
}

// over is the fault of a module that exceeds a budget.
func (f *estimate) over(budget string) *ModuleError {
	return &ModuleError{
		cause:  ErrCompileBudget,
		Reason: fmt.Sprintf("compiling it needs more than %s; the most goes to %s of %d bytes, with %d blocks and branches", budget, f.function, f.Size, f.Edges),
		Hint:   "split that function, or the switch or table of branches in it, into several",
	}
}
