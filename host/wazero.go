package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/flowhost/flowhost/host/internal/wasm"
	"github.com/flowhost/flowhost/sdk/abi"
)

const wasiModule = wasi_snapshot_preview1.ModuleName

// wazeroSandbox compiles modules that pass the preflight and makes a new
// instance for each call.
type wazeroSandbox struct {
	limits  PreflightLimits
	runtime wazero.Runtime
	cache   wazero.CompilationCache // nil without a directory
	offered offers
}

// newWazeroSandbox keeps compiled modules in the directory, unless it is "".
func newWazeroSandbox(ctx context.Context, cacheDir string, limits PreflightLimits) (*wazeroSandbox, error) {
	config := wazero.NewRuntimeConfig().
		WithCoreFeatures(api.CoreFeaturesV2).
		WithCloseOnContextDone(true).
		WithDebugInfoEnabled(false)
	cache, err := openCache(cacheDir)
	if err != nil {
		return nil, err
	}
	if cache != nil {
		config = config.WithCompilationCache(cache)
	}
	s := &wazeroSandbox{limits: limits, runtime: wazero.NewRuntimeWithConfig(ctx, config), cache: cache}
	if err := s.provide(ctx); err != nil {
		return nil, errors.Join(err, s.close(ctx))
	}
	return s, nil
}

func openCache(dir string) (wazero.CompilationCache, error) {
	if dir == "" {
		return nil, nil
	}
	err := os.MkdirAll(dir, 0o700)
	if err == nil {
		err = os.Chmod(dir, 0o700) // it may have been there before
	}
	if err != nil {
		return nil, fmt.Errorf("the cache of compiled modules must be a directory of its owner alone: %w", err)
	}
	return wazero.NewCompilationCacheWithDir(dir)
}

// provide makes the host's import modules and notes what they offer.
func (s *wazeroSandbox) provide(ctx context.Context) error {
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, s.runtime); err != nil {
		return err
	}
	if err := provideTaskModule(ctx, s.runtime); err != nil {
		return err
	}
	s.offered = offers{}
	for _, name := range []string{wasiModule, abi.Module} {
		functions := map[string]string{}
		for fn, def := range s.runtime.Module(name).ExportedFunctionDefinitions() {
			functions[fn] = functionType(def)
		}
		s.offered[name] = functions
	}
	return nil
}

func (s *wazeroSandbox) offers() offers { return s.offered }

func (s *wazeroSandbox) close(ctx context.Context) error {
	err := s.runtime.Close(ctx)
	if s.cache != nil {
		err = errors.Join(err, s.cache.Close(ctx))
	}
	return err
}

func (s *wazeroSandbox) prepare(ctx context.Context, binary []byte) (img image, err error) {
	defer func() {
		if r := recover(); r != nil { // in wazero: no module may end the host
			img, err = nil, &ModuleError{Reason: fmt.Sprintf("compiling it broke the compiler: %v", r), Hint: "build it with another version of its toolchain"}
		}
	}()
	walked, fault := preflight(binary, s.limits)
	if fault != nil {
		return nil, fault
	}
	code, err := s.runtime.CompileModule(ctx, walked.Core(s.limits.TableMaximum))
	if err != nil {
		return nil, compileFault(err)
	}
	form := shapeOf(walked, code)
	form.size = int64(len(binary))
	return &freshImage{runtime: s.runtime, code: code, form: form}, nil
}

func compileFault(err error) *ModuleError {
	reason, _, _ := strings.Cut(err.Error(), "\n")
	return &ModuleError{Reason: "not a valid module: " + reason, Hint: "build it again, or with another version of its toolchain"}
}

func shapeOf(walked *wasm.Module, code wazero.CompiledModule) shape {
	form := shape{imports: importsOf(walked), manifest: walked.Custom}
	functions := code.ImportedFunctions() // in the module's order
	for i := range form.imports {
		if form.imports[i].Kind == KindFunction && len(functions) > 0 {
			form.imports[i].Type = functionType(functions[0])
			functions = functions[1:]
		}
	}
	for name, def := range code.ExportedFunctions() {
		form.exports = append(form.exports, Extern{Name: name, Kind: KindFunction, Type: functionType(def)})
	}
	for name, def := range code.ExportedMemories() {
		form.exports = append(form.exports, Extern{Name: name, Kind: KindMemory})
		form.memory = memoryOf(name, def)
	}
	slices.SortFunc(form.exports, func(a, b Extern) int { return strings.Compare(a.Name, b.Name) })
	return form
}

func memoryOf(name string, def api.MemoryDefinition) *Memory {
	const page = 64 << 10
	m := &Memory{Name: name, Min: int64(def.Min()) * page}
	if limit, ok := def.Max(); ok {
		m.Max = int64(limit) * page
	}
	return m
}

// functionType writes a type as the specification's text format orders it:
// "(i32, i32) -> i32".
func functionType(def api.FunctionDefinition) string {
	list := func(types []api.ValueType) string {
		names := make([]string, len(types))
		for i, t := range types {
			names[i] = api.ValueTypeName(t)
		}
		return strings.Join(names, ", ")
	}
	params, results := def.ParamTypes(), def.ResultTypes()
	if len(results) == 1 {
		return "(" + list(params) + ") -> " + list(results)
	}
	return "(" + list(params) + ") -> (" + list(results) + ")"
}
