package host

import (
	"context"
	"errors"
	"fmt"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/flowhost/flowhost/host/internal/compile"
	"github.com/flowhost/flowhost/host/internal/wasm"
	"github.com/flowhost/flowhost/sdk/abi"
)

// preparation is the way of a module's bytes to native code.
type preparation struct {
	sandbox  *sandbox
	digest   string
	module   *wasm.Prepared
	unstored string    // key under which the cache does not have the module yet, "" if it has
	estimate *estimate // nil until it is needed
	code     wazero.CompiledModule
}

// begin walks and rewrites the module, and loads its native code or compiles
// it, unless that takes a child.
func (p *preparation) begin(ctx context.Context, open func(context.Context) ([]byte, error)) error {
	if err := p.rewrite(ctx, open); err != nil {
		return err
	}
	if p.sandbox.cache != nil {
		if err := p.load(); !errors.Is(err, errNotCompiled) {
			return err
		}
	}
	if forecast := p.module.Forecast(); p.sandbox.compiles && !fits(forecast) {
		p.estimate = &estimate{Forecast: forecast, function: p.functionName(forecast.Worst)}
		return nil
	}
	return p.compile(context.WithoutCancel(ctx))
}

// rewrite opens, walks and rewrites a module, unless the cache has the result.
func (p *preparation) rewrite(ctx context.Context, open func(context.Context) ([]byte, error)) error {
	options := p.sandbox.rewriting()
	key := p.sandbox.rules() + p.digest
	if stored := p.sandbox.store.Load(compile.Rewritten, key); stored != nil {
		var err error
		if p.module, err = wasm.UnmarshalPrepared(stored); err == nil {
			return nil
		}
	}
	binary, err := open(ctx)
	if err != nil {
		return err
	}
	walked, fault := preflight(binary, p.sandbox.limits)
	if fault != nil {
		return fault
	}
	p.module, p.unstored = walked.Prepare(options), key
	return nil
}

// rewriting is how modules are rewritten.
func (s *sandbox) rewriting() wasm.RewriteOptions {
	return wasm.RewriteOptions{TableMaximum: s.limits.TableMaximum, Units: wasm.LeastGrant, Depth: s.depth}
}

// rules are those by which modules are checked and rewritten: what other ones have led to
// is not used.
func (s *sandbox) rules() string {
	return fmt.Sprint(wasm.RewriteVersion, " ", s.limits, s.rewriting(), " ")
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

// validate lets wazero validate a module that was not rewritten, and compile nothing. It
// fails with a *ModuleError.
func (s *sandbox) validate(walked *wasm.Module) (err error) {
	defer recovered(&err)
	ctx, cancel := context.WithCancelCause(s.base)
	cancel(errNotCompiled)
	code, err := s.runtime.CompileModule(experimental.WithCompilationWorkers(ctx, 2), walked.Plain())
	if errors.Is(err, errNotCompiled) {
		return nil
	}
	if err != nil {
		return compileFault(err)
	}
	return code.Close(s.base) // it has no code, or the interpreter took it
}

// recovered turns a panic of wazero into an error: no module may end the host.
func recovered(err *error) {
	if r := recover(); r != nil {
		*err = &ModuleError{Reason: fmt.Sprintf("compiling it broke the compiler: %v", r), Hint: "build it with another version of its toolchain"}
	}
}

// compile lets wazero validate the module, and load or compile its code.
func (p *preparation) compile(ctx context.Context) (err error) {
	defer recovered(&err)
	p.code, err = p.sandbox.runtime.CompileModule(ctx, p.module.Binary)
	if err != nil && compile.IsStorageFault(err) {
		p.sandbox.compiler.Mend(err)
		p.code, err = p.sandbox.runtime.CompileModule(ctx, p.module.Binary)
	}
	if err != nil {
		p.code = nil
		if errors.Is(err, errNotCompiled) {
			return errNotCompiled
		}
		return compileFault(err)
	}
	if p.unstored != "" { // only now: modules that are refused take no room
		p.sandbox.store.Store(compile.Rewritten, p.unstored, p.module.AppendBinary)
		p.unstored = ""
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
		base: s.base, runtime: s.runtime, code: p.code, form: shapeOf(p.module.Size, &p.module.Interface, p.module.Custom),
		globals: p.module.Globals, names: p.module.Names, data: p.module.Data, depth: s.depth,
		binary:    int64(len(p.module.Binary)),
		laid:      int64(len(p.module.Data)),
		footprint: footprint(p.module),
		checks:    Checks{Loops: p.module.Loops, Functions: p.module.Entries},
	}
	img.asks = img.form.importsFunction(abi.Module, abi.ImportShouldStop)
	img.judge(&p.module.Rewritten)
	return img
}

// functionName names a function for the module's author.
func (p *preparation) functionName(index int) string {
	if name := p.module.Names.Function(index); name != "" {
		return fmt.Sprintf("function %d (%.100s)", index, name)
	}
	return fmt.Sprintf("function %d", index)
}
