package host

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/flowhost/flowhost/host/internal/wasi"
	"github.com/flowhost/flowhost/host/internal/wasm"
	"github.com/flowhost/flowhost/sdk/abi"
)

const wasiModule = "wasi_snapshot_preview1"

// sandbox is wazero as this host uses it: what modules may import, and how they
// are compiled.
type sandbox struct {
	base    context.Context // of what is closed later; it never ends
	limits  PreflightLimits
	depth   int32
	runtime wazero.Runtime
	cache   wazero.CompilationCache // nil without a directory
	offered offers
}

// offers is the types of the functions that can be imported, by module and name.
type offers map[string]map[string]string

func newSandbox(ctx context.Context, config Config) (*sandbox, error) {
	settings := wazero.NewRuntimeConfigCompiler()
	if config.Engine == Interpreter {
		settings = wazero.NewRuntimeConfigInterpreter()
	}
	// Guests are stopped by what the rewrite has put into them.
	settings = settings.WithCoreFeatures(api.CoreFeaturesV2).WithDebugInfoEnabled(false)
	cache := openCache(config.CacheDir, config.Log)
	if cache != nil {
		settings = settings.WithCompilationCache(cache)
	}
	s := &sandbox{
		base:   context.WithoutCancel(ctx),
		limits: config.Preflight, depth: int32(config.Depth),
		runtime: wazero.NewRuntimeWithConfig(ctx, settings), cache: cache, offered: offers{},
	}
	if err := s.provide(ctx); err != nil {
		return nil, errors.Join(err, s.close(ctx))
	}
	return s, nil
}

// provide makes the host's import modules and notes what guests may use of them.
func (s *sandbox) provide(ctx context.Context) error {
	if err := wasi.Provide(ctx, s.runtime, processOf); err != nil {
		return err
	}
	if err := provideTaskModule(ctx, s.runtime); err != nil {
		return err
	}
	if err := provideInterrupt(ctx, s.runtime); err != nil {
		return err
	}
	for _, name := range []string{wasiModule, abi.Module} {
		functions := map[string]string{}
		for fn, def := range s.runtime.Module(name).ExportedFunctionDefinitions() {
			functions[fn] = functionType(def)
		}
		s.offered[name] = functions
	}
	return nil
}

func (s *sandbox) close(ctx context.Context) error {
	err := s.runtime.Close(ctx)
	if s.cache != nil {
		err = errors.Join(err, s.cache.Close(ctx))
	}
	return err
}

// prepare makes a module ready to run. It fails with a *ModuleError that has no
// path yet, or with ctx's error.
func (s *sandbox) prepare(ctx context.Context, binary []byte) (img *image, err error) {
	defer func() {
		if r := recover(); r != nil { // in wazero: no module may end the host
			img, err = nil, &ModuleError{Reason: fmt.Sprintf("compiling it broke the compiler: %v", r), Hint: "build it with another version of its toolchain"}
		}
	}()
	walked, fault := preflight(binary, s.limits)
	if fault != nil {
		return nil, fault
	}
	rewritten := walked.Rewrite(wasm.RewriteOptions{
		TableMaximum: s.limits.TableMaximum, Units: firstGrant, Depth: s.depth,
	})
	code, err := s.runtime.CompileModule(ctx, rewritten.Binary)
	if err != nil {
		return nil, compileFault(err)
	}
	img = &image{
		base: s.base, runtime: s.runtime, code: code, form: shapeOf(walked, code, len(binary)),
		globals: rewritten.Globals, names: walked.Names, depth: s.depth,
		checks: Checks{Loops: rewritten.Loops, Functions: rewritten.Entries},
	}
	img.asks = img.form.importsFunction(abi.Module, abi.ImportShouldStop)
	img.judge(rewritten)
	return img, nil
}

func compileFault(err error) *ModuleError {
	reason, _, _ := strings.Cut(err.Error(), "\n")
	return &ModuleError{Reason: "not a valid module: " + reason, Hint: "build it again, or with another version of its toolchain"}
}
