package wasi

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental/sysfs"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	wasys "github.com/tetratelabs/wazero/sys"
)

type processKey struct{}

func withProcess(ctx context.Context, p *Process) context.Context {
	return context.WithValue(ctx, processKey{}, p)
}

func processOf(ctx context.Context) *Process {
	p, _ := ctx.Value(processKey{}).(*Process)
	return p
}

// guest is an instance of a module that exports each function of preview 1 as
// it imports it, with two pages of memory.
type guest struct {
	t      testing.TB
	module api.Module
	ctx    context.Context
}

// call gives the error number that a function answered.
func (g *guest) call(name string, params ...uint64) errno {
	g.t.Helper()
	e, err := g.try(name, params...)
	if err != nil {
		g.t.Fatalf("%s%v: %v", name, params, err)
	}
	return e
}

func (g *guest) try(name string, params ...uint64) (errno, error) {
	results, err := g.module.ExportedFunction(name).Call(g.ctx, params...)
	if err != nil || len(results) == 0 {
		return 0, err
	}
	return errno(results[0]), nil
}

// want calls a function that must answer an error number.
func (g *guest) want(want errno, name string, params ...uint64) {
	g.t.Helper()
	if got := g.call(name, params...); got != want {
		g.t.Errorf("%s%v answered %d, want %d", name, params, got, want)
	}
}

func (g *guest) memory() []byte {
	b, _ := g.module.Memory().Read(0, g.module.Memory().Size())
	return b
}

func (g *guest) put(ptr int, values ...any) {
	b := g.memory()[ptr:]
	for _, v := range values {
		if s, ok := v.(string); ok {
			b = b[copy(b, s):]
			continue
		}
		n, err := binary.Encode(b, binary.LittleEndian, v)
		if err != nil {
			g.t.Fatal(err)
		}
		b = b[n:]
	}
}

func (g *guest) uint32(ptr int) uint32 { return binary.LittleEndian.Uint32(g.memory()[ptr:]) }
func (g *guest) uint64(ptr int) uint64 { return binary.LittleEndian.Uint64(g.memory()[ptr:]) }

// text gives part of the guest's memory.
func (g *guest) text(ptr, n int) string { return string(g.memory()[ptr : ptr+n]) }

// path is the parameters of a path that is put into the guest's memory.
func (g *guest) path(ptr int, p string) (uint64, uint64) {
	g.put(ptr, p)
	return uint64(ptr), uint64(len(p))
}

// open opens a path below descriptor 3 and gives the number.
func (g *guest) open(p string, oflags uint16, rights uint64) uint32 {
	g.t.Helper()
	ptr, n := g.path(0x1f000, p)
	g.want(0, "path_open", 3, lookupFollow, ptr, n, uint64(oflags), rights, 0, 0, 0x1eff0)
	return g.uint32(0x1eff0)
}

// world is a runtime with one of the implementations: the guests are instances of
// modules that are compiled once.
type world struct {
	runtime wazero.Runtime
	modules sync.Map // compiled, by what they were compiled from
}

// newWorlds makes "ours" and "theirs".
func newWorlds(config wazero.RuntimeConfig) map[string]*world {
	ctx := context.Background()
	config = config.WithCompilationCache(wazero.NewCompilationCache())
	ours := &world{runtime: wazero.NewRuntimeWithConfig(ctx, config)}
	theirs := &world{runtime: wazero.NewRuntimeWithConfig(ctx, config)}
	if err := Provide(ctx, ours.runtime, processOf); err != nil {
		panic(err)
	}
	wasi_snapshot_preview1.MustInstantiate(ctx, theirs.runtime)
	return map[string]*world{"ours": ours, "theirs": theirs}
}

// Large programs that run once are interpreted sooner than compiled.
var (
	worlds         = sync.OnceValue(func() map[string]*world { return newWorlds(wazero.NewRuntimeConfigInterpreter()) })
	compiledWorlds = sync.OnceValue(func() map[string]*world { return newWorlds(wazero.NewRuntimeConfig()) })
)

func (w *world) compile(t testing.TB, binary []byte) wazero.CompiledModule {
	t.Helper()
	type result struct {
		code wazero.CompiledModule
		err  error
	}
	compile, _ := w.modules.LoadOrStore(string(binary), sync.OnceValue(func() result {
		code, err := w.runtime.CompileModule(context.Background(), binary)
		return result{code, err}
	}))
	r := compile.(func() result)()
	if r.err != nil {
		t.Fatal(r.err)
	}
	return r.code
}

func (w *world) instantiate(t testing.TB, binary []byte, config wazero.ModuleConfig) api.Module {
	t.Helper()
	m, err := w.runtime.InstantiateModule(context.Background(), w.compile(t, binary), config.WithName("").WithStartFunctions())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close(context.Background()) })
	return m
}

func (w *world) newGuest(t testing.TB, ctx context.Context, config wazero.ModuleConfig) *guest {
	return &guest{t, w.instantiate(t, everything(2), config), ctx}
}

// newGuest makes a guest of this package with a process.
func newGuest(t testing.TB, p *Process) *guest {
	return worlds()["ours"].newGuest(t, withProcess(context.Background(), p), wazero.NewModuleConfig())
}

// newTheirs makes a guest of wazero's implementation that is given the same.
func newTheirs(t testing.TB, p *Process) *guest {
	return worlds()["theirs"].newGuest(t, context.Background(), moduleConfig(p))
}

func moduleConfig(p *Process) wazero.ModuleConfig {
	config := wazero.NewModuleConfig().WithArgs(p.Args...).WithStdin(p.Stdin).WithStdout(p.Stdout).WithStderr(p.Stderr).WithRandSource(p.Random).
		WithNanosleep(func(ns int64) { p.Sleep(ns) })
	for _, v := range p.Env {
		key, value, _ := strings.Cut(v, "=")
		config = config.WithEnv(key, value)
	}
	if p.Walltime != nil {
		config = config.WithWalltime(func() (int64, int32) { return p.Walltime() }, defaultResolution).WithNanotime(func() int64 { return p.Nanotime() }, defaultResolution)
	}
	if p.FS != nil {
		config = config.WithFSConfig(wazero.NewFSConfig().(sysfs.FSConfig).WithSysFSMount(p.FS, "/"))
	}
	return config
}

// exitStatus gives the status of a guest that exited, whichever way it did.
func exitStatus(err error) (uint32, bool) {
	if exit, ok := errors.AsType[*Exit](err); ok {
		return exit.Status, true
	}
	if exit, ok := errors.AsType[*wasys.ExitError](err); ok {
		return exit.ExitCode(), true
	}
	return 0, false
}

// everything assembles the module of a guest.
func everything(pages byte) []byte {
	var types, imports, declared, exports, code [][]byte
	list := functions()
	for i, f := range list {
		typ := slices.Concat([]byte{0x60}, sized(valueTypes(f.params)), sized(valueTypes(f.results)))
		types = append(types, typ)
		imports = append(imports, slices.Concat(sized([]byte(ModuleName)), sized([]byte(f.name)), []byte{0, byte(i)}))
		declared = append(declared, []byte{byte(i)})
		exports = append(exports, slices.Concat(sized([]byte(f.name)), []byte{0, byte(len(list) + i)}))
		body := []byte{0} // no locals
		for p := range len(f.params) {
			body = append(body, 0x20, byte(p)) // local.get
		}
		code = append(code, sized(append(body, 0x10, byte(i), 0x0b))) // call, end
	}
	module := slices.Concat([]byte("\x00asm\x01\x00\x00\x00"), section(1, types), section(2, imports), section(3, declared))
	if pages > 0 {
		module = append(module, section(5, [][]byte{{0, pages}})...)
		exports = append(exports, append(sized([]byte("memory")), 2, 0))
	}
	return slices.Concat(module, section(7, exports), section(10, code))
}

func section(id byte, entries [][]byte) []byte {
	body := binary.AppendUvarint(nil, uint64(len(entries)))
	return append([]byte{id}, sized(append(body, bytes.Join(entries, nil)...))...)
}

func sized(b []byte) []byte {
	return append(binary.AppendUvarint(nil, uint64(len(b))), b...)
}
