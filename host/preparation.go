package host

import (
	"context"
	"errors"
	"fmt"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/flowhost/flowhost/host/internal/wasm"
	"github.com/flowhost/flowhost/sdk/abi"
)

// preparation is the way of a module's bytes to native code.
type preparation struct {
	sandbox   *sandbox
	size      int
	walked    *wasm.Module
	rewritten *wasm.Rewritten
	estimate  *estimate // nil until it is needed
	code      wazero.CompiledModule
}

// begin walks and rewrites the module, and loads its native code or compiles
// it, unless that takes a child.
func (p *preparation) begin(ctx context.Context, open func(context.Context) ([]byte, error)) error {
	binary, err := open(ctx)
	if err != nil {
		return err
	}
	walked, fault := preflight(binary, p.sandbox.limits)
	if fault != nil {
		return fault
	}
	p.size, p.walked = len(binary), walked
	p.rewritten = walked.Rewrite(wasm.RewriteOptions{
		TableMaximum: p.sandbox.limits.TableMaximum, Units: wasm.LeastGrant, Depth: p.sandbox.depth,
	})
	if p.sandbox.cache != nil {
		if err := p.load(); !errors.Is(err, errNotCompiled) {
			return err
		}
	}
	if forecast := p.rewritten.Forecast(); p.sandbox.compiles && !fits(forecast) {
		p.estimate = &estimate{Forecast: forecast, function: p.functionName(forecast.Worst)}
		return nil
	}
	return p.compile(context.WithoutCancel(ctx))
}

// errNotCompiled is for a valid module of which the cache has no native code.
var errNotCompiled = errors.New("it is not compiled yet")

// load gets native code from the cache, or fails with errNotCompiled. wazero
// cannot be asked for that alone, but it validates, looks into its cache and only
// then begins to compile; and of several workers each looks at its context before
// it compiles a function.
func (p *preparation) load() error {
	ctx, cancel := context.WithCancelCause(p.sandbox.base)
	cancel(errNotCompiled)
	return p.compile(experimental.WithCompilationWorkers(ctx, 2))
}

// compile lets wazero validate the module, and load or compile its code.
func (p *preparation) compile(ctx context.Context) (err error) {
	defer func() {
		if r := recover(); r != nil { // in wazero: no module may end the host
			err = &ModuleError{Reason: fmt.Sprintf("compiling it broke the compiler: %v", r), Hint: "build it with another version of its toolchain"}
		}
	}()
	p.code, err = p.sandbox.runtime.CompileModule(ctx, p.rewritten.Binary)
	if err != nil {
		p.code = nil
		if errors.Is(err, errNotCompiled) {
			return errNotCompiled
		}
		return compileFault(err)
	}
	return nil
}

// image is that of the module, nil without code.
func (p *preparation) image() *image {
	if p.code == nil {
		return nil
	}
	s := p.sandbox
	img := &image{
		base: s.base, runtime: s.runtime, code: p.code, form: shapeOf(p.walked, p.code, p.size),
		globals: p.rewritten.Globals, names: p.walked.Names, depth: s.depth,
		binary:    int64(len(p.rewritten.Binary)),
		footprint: footprint(p.walked, p.rewritten),
		checks:    Checks{Loops: p.rewritten.Loops, Functions: p.rewritten.Entries},
	}
	img.asks = img.form.importsFunction(abi.Module, abi.ImportShouldStop)
	img.judge(p.rewritten)
	return img
}

// functionName names a function for the module's author.
func (p *preparation) functionName(index int) string {
	if name := p.walked.Names.Function(index); name != "" {
		return fmt.Sprintf("function %d (%.100s)", index, name)
	}
	return fmt.Sprintf("function %d", index)
}
