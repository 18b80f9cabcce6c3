package host

import (
	"context"
	"errors"
	goruntime "runtime"
	"strings"

	"github.com/tetratelabs/wazero"
	"golang.org/x/sync/semaphore"

	"github.com/flowhost/flowhost/host/internal/compile"
	"github.com/flowhost/flowhost/host/internal/wasi"
	"github.com/flowhost/flowhost/sdk/abi"
)

const wasiModule = "wasi_snapshot_preview1"

// sandbox is wazero as this host uses it: what modules may import, and how they
// are compiled.
type sandbox struct {
	base     context.Context // of what is closed later; it never ends
	limits   PreflightLimits
	depth    int32
	runtime  wazero.Runtime
	compiles bool                    // to native code
	cache    wazero.CompilationCache // nil without a directory
	store    *compile.Store          // nil without a directory that outlives the process
	compiler *compile.Compiler
	places   *semaphore.Weighted // of modules that are prepared in this process
	checks   *semaphore.Weighted // of modules that are checked
	offered  offers
}

// maxChecks bounds the modules that are checked at a time, each of which may take 300 MB
// for as long as it is.
const maxChecks = 8

// offers is the types of the functions that can be imported, by module and name.
type offers map[string]map[string]string

func newSandbox(ctx context.Context, config Config) (*sandbox, error) {
	settings, command := compile.Settings(), config.CompileCommand
	if config.Engine == Interpreter {
		settings, command = compile.WithFeatures(wazero.NewRuntimeConfigInterpreter()), nil
	}
	cache, store := compile.OpenCache(config.CacheDir, config.Log)
	compiler, cache, err := compile.New(compile.Config{
		Command: command, CacheDir: config.CacheDir, Time: config.CompileTime, Memory: config.CompileMemory, Log: config.Log,
	}, cache)
	if err != nil {
		return nil, err
	}
	if cache != nil {
		settings = settings.WithCompilationCache(cache)
	}
	s := &sandbox{
		compiles: config.Engine == Compiler,
		base:     context.WithoutCancel(ctx),
		limits:   config.Preflight, depth: int32(config.Depth),
		runtime: wazero.NewRuntimeWithConfig(ctx, settings), cache: cache, store: store, compiler: compiler, offered: offers{},
		places: semaphore.NewWeighted(int64(max(goruntime.GOMAXPROCS(0)/2, 1))),
		checks: semaphore.NewWeighted(int64(min(goruntime.GOMAXPROCS(0), maxChecks))),
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
	return errors.Join(err, s.compiler.Close())
}

// prepare makes a module ready to run, a few at a time; those that wait for a
// child keep nobody else waiting. open gives the bytes of the
// module of that digest. It fails with a
// *ModuleError that has no path yet, with ctx's error, or as open does.
func (s *sandbox) prepare(ctx context.Context, digest string, open func(context.Context) ([]byte, error)) (*image, error) {
	if err := s.places.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	p := preparation{sandbox: s, digest: digest}
	err := p.begin(ctx, open)
	s.places.Release(1)
	if err != nil || p.code != nil {
		return p.image(), err
	}
	if err := s.compileInChild(ctx, p.module.Binary, p.estimate); err != nil {
		return nil, err
	}
	if err := s.places.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	defer s.places.Release(1)
	if err := p.load(); errors.Is(err, errNotCompiled) {
		return nil, &ModuleError{passing: true, Reason: "its native code is gone from the cache", Hint: "another process may have removed it: try again"}
	} else if err != nil {
		return nil, err
	}
	return p.image(), nil
}

func compileFault(err error) *ModuleError {
	if compile.IsStorageFault(err) {
		return &ModuleError{passing: true, Reason: "the cache of compiled modules cannot be used: " + err.Error(), Hint: "look at its directory, or set another cache"}
	}
	reason, _, _ := strings.Cut(err.Error(), "\n")
	return &ModuleError{Reason: "not a valid module: " + reason, Hint: "build it again, or with another version of its toolchain"}
}
