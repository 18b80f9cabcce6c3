package host_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flowhost/flowhost/host"
	"github.com/flowhost/flowhost/run"
)

// opens counts how often modules are read from a folder.
type opens struct {
	host.Folder
	n atomic.Int32
}

func (o *opens) Open(ctx context.Context, digest string) ([]byte, error) {
	o.n.Add(1)
	return o.Folder.Open(ctx, digest)
}

// hostOn makes a host with a cache of its own, which lets a file be known at once.
func hostOn(t *testing.T, cache string, config host.Config) *host.Host {
	t.Helper()
	config.CacheDir, config.CompileCommand = cache, compileCommand()
	h, err := host.New(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	host.Settle(h)
	t.Cleanup(func() {
		if err := h.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return h
}

// A module that a host has checked is known to the next one, without being read, until its
// file changes, it is not stored, or another host would judge otherwise.
func TestKnownModules(t *testing.T) {
	t.Parallel()
	cache, kept := t.TempDir(), host.Folder(t.TempDir())
	path := writeFile(t, "module.wasm", noop().bytes())
	source := &opens{Folder: kept}
	all := host.Catalog{Host: hostOn(t, cache, host.Config{Modules: source})}
	if _, known := all.Known(t.Context(), path); known {
		t.Error("a module is known that nobody has checked")
	}
	want, err := all.Signature(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	all.Host = hostOn(t, cache, host.Config{Modules: source})
	got, known := all.Known(t.Context(), path)
	if diff := cmp.Diff(want, got); diff != "" || !known {
		t.Errorf("by path: %t, %s", known, diff)
	}
	got, err = all.SignatureOf(t.Context(), want.Digest)
	if diff := cmp.Diff(want, got); diff != "" || err != nil || source.n.Load() > 0 {
		t.Errorf("by digest: %v, %s; %d modules were read", err, diff, source.n.Load())
	}
	wants := func(why string, c host.Catalog, want bool) {
		t.Helper()
		if _, known := c.Known(t.Context(), path); known != want {
			t.Errorf("%s: known %t", why, known)
		}
	}
	wants("only compiled ones", host.Catalog{Host: all.Host, Compile: true}, false)
	wants("of less size", host.Catalog{Host: hostOn(t, cache, host.Config{Modules: source, ModuleSize: 10})}, false)
	wants("under other limits", host.Catalog{Host: hostOn(t, cache, host.Config{Modules: source, Preflight: host.PreflightLimits{Types: 50}})}, false)
	wants("of another depth", host.Catalog{Host: hostOn(t, cache, host.Config{Modules: source, Depth: 50})}, false)

	elsewhere := host.Catalog{Host: hostOn(t, cache, host.Config{Modules: host.Folder(t.TempDir())})}
	wants("not stored here", elsewhere, false)
	wants("not to be stored", host.Catalog{Host: elsewhere.Host, Discard: true}, true)
	if _, err := elsewhere.SignatureOf(t.Context(), want.Digest); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of a module that is not stored: %v", err)
	}
	if _, err := elsewhere.Signature(t.Context(), path); err != nil {
		t.Error(err)
	}
	wants("stored again", elsewhere, true)

	if err := os.WriteFile(path, withCustomSection(noop().bytes(), "n", "1"), 0o600); err != nil {
		t.Fatal(err)
	}
	wants("changed", all, false)
	if changed, err := all.Signature(t.Context(), path); err != nil || changed.Digest == want.Digest {
		t.Errorf("changed: %+v, %v", changed, err)
	}
	wants("checked again", all, true)
}

// Who leaves the code of functions to the compiler neither hides from others that it is
// unchecked nor gets past the compiler.
func TestDeferredCode(t *testing.T) {
	t.Parallel()
	h := hostOn(t, t.TempDir(), host.Config{Modules: host.NewMemorySource()})
	later, now, compiled := host.Catalog{Host: h, Defer: true}, host.Catalog{Host: h}, host.Catalog{Host: h, Compile: true, Defer: true}
	wrong, right := writeFile(t, "wrong.wasm", task(opI32Add).bytes()), writeFile(t, "right.wasm", noop().bytes())
	signature, err := later.Signature(t.Context(), wrong)
	if err != nil {
		t.Fatal(err)
	}
	for _, all := range []host.Catalog{now, compiled} {
		if _, known := all.Known(t.Context(), wrong); known {
			t.Errorf("%+v: it is known", all)
		}
		if _, err := all.Signature(t.Context(), wrong); !isModuleError(err) {
			t.Errorf("%+v: %v", all, err)
		}
	}
	if _, err := h.Compile(t.Context(), signature.Digest); !isModuleError(err) {
		t.Errorf("compiled: %v", err)
	}
	wantFailure(t, invoke(t, h, callOf(signature.Digest, "", "1")), run.OutcomeRejected, run.CodeModule)

	for _, all := range []host.Catalog{later, now, compiled} {
		if _, known := all.Known(t.Context(), right); known {
			t.Errorf("%+v: what nobody has checked is known", all)
		}
		if _, err := all.Signature(t.Context(), right); err != nil {
			t.Error(err)
		}
		if _, known := all.Known(t.Context(), right); !known {
			t.Errorf("%+v: it is not known", all)
		}
	}
}

func isModuleError(err error) bool {
	_, ok := errors.AsType[*host.ModuleError](err)
	return ok
}

// Modules that are refused are checked each time.
func TestRefusedModulesAreNotKnown(t *testing.T) {
	t.Parallel()
	cache := t.TempDir()
	for name, module := range map[string][]byte{
		"wrong types": task(opI32Add).bytes(), "no module": []byte("text"), "an import that is not offered": importedGlobal(),
	} {
		path := writeFile(t, "module.wasm", module)
		for range 2 {
			all := host.Catalog{Host: hostOn(t, cache, host.Config{}), Discard: true}
			_, err := all.Signature(t.Context(), path)
			if fault, ok := errors.AsType[*host.ModuleError](err); !ok || fault.Path != path {
				t.Errorf("%s: %v", name, err)
			}
			if _, known := all.Known(t.Context(), path); known {
				t.Errorf("%s: it is known", name)
			}
		}
	}
}

// Whatever has become of the files in which modules are known costs time only.
func TestDamagedKnowledge(t *testing.T) {
	t.Parallel()
	cache := t.TempDir()
	path, other := writeFile(t, "module.wasm", noop().bytes()), writeFile(t, "other.wasm", numbered(1))
	look := func(path string) (run.Signature, bool) {
		t.Helper()
		all := host.Catalog{Host: hostOn(t, cache, host.Config{}), Compile: true, Discard: true}
		_, known := all.Known(t.Context(), path)
		signature, err := all.Signature(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		return signature, known
	}
	want, _ := look(path)
	look(other)
	if _, known := look(path); !known {
		t.Fatal("the module is not known")
	}
	files, err := filepath.Glob(filepath.Join(cache, "flowhost-modules", "known-*", "*"))
	if err != nil || len(files) != 5 { // facts and mark of two modules, and the list of files
		t.Fatalf("%q, %v", files, err)
	}
	whole := map[string][]byte{}
	for _, file := range files {
		if whole[file], err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
	for name, damage := range map[string]func(i int, b []byte) []byte{
		"empty":         func(int, []byte) []byte { return nil },
		"cut":           func(_ int, b []byte) []byte { return b[:len(b)-1] },
		"a wrong bit":   func(_ int, b []byte) []byte { b[len(b)-1] ^= 1; return b },
		"another's":     func(i int, _ []byte) []byte { return bytes.Clone(whole[files[(i+1)%len(files)]]) },
		"nobody's":      func(int, []byte) []byte { return []byte(strings.Repeat("x", 100)) },
		"another's, -1": func(i int, _ []byte) []byte { return bytes.Clone(whole[files[(i+len(files)-1)%len(files)]]) },
	} {
		for i, file := range files {
			if err := os.WriteFile(file, damage(i, bytes.Clone(whole[file])), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		got, known := look(path)
		if diff := cmp.Diff(want, got); diff != "" || known {
			t.Errorf("%s: known %t, %s", name, known, diff)
		}
		look(other)
		if _, known := look(path); !known {
			t.Errorf("%s: what was damaged is not replaced", name)
		}
	}
}

// A module that a host has compiled in advance is not kept in memory, and is not compiled
// again, whatever becomes of its stored bytes.
func TestCompileInAdvance(t *testing.T) {
	t.Parallel()
	cache, kept := t.TempDir(), &opens{Folder: host.Folder(t.TempDir())}
	path := writeFile(t, "module.wasm", bomb(t, "ifs", 2_000))
	h := hostOn(t, cache, host.Config{Modules: kept})
	signature, err := host.Catalog{Host: h}.Signature(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Compile(t.Context(), digestOf([]byte("nothing"))); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a module that is not stored: %v", err)
	}
	for _, want := range []bool{true, false} {
		if done, err := h.Compile(t.Context(), signature.Digest); done != want || err != nil {
			t.Errorf("%t, %v, want %t", done, err, want)
		}
	}
	if n := host.Prepared(h); n > 0 {
		t.Errorf("%d modules are kept in memory", n)
	}
	reads := kept.n.Load()
	later, err := host.New(t.Context(), host.Config{CacheDir: cache, CompileCommand: []string{"false"}, Modules: kept})
	if err != nil {
		t.Fatal(err)
	}
	defer later.Close(t.Context())
	if done, err := later.Compile(t.Context(), signature.Digest); done || err != nil {
		t.Errorf("another host: %t, %v", done, err)
	}
	wantOutput(t, invoke(t, later, callOf(signature.Digest, "", "1")), "null")
	if kept.n.Load() != reads {
		t.Error("the module was read although the cache has it")
	}
}

// Modules that cannot be compiled are refused where that is asked for, and by each call.
func TestCompileBeyondTheBudget(t *testing.T) {
	t.Parallel()
	path := writeFile(t, "plugin.wasm", bomb(t, "ifs", 2_000))
	h, err := host.New(t.Context(), host.Config{CacheDir: t.TempDir()}) // no command: it has its own process only
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close(t.Context())
	signature, err := host.Catalog{Host: h}.Signature(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Signature(t.Context(), path); !errors.Is(err, host.ErrCompileBudget) || !strings.HasPrefix(err.Error(), path) {
		t.Errorf("signature: %v", err)
	}
	if _, err := h.Compile(t.Context(), signature.Digest); !errors.Is(err, host.ErrCompileBudget) {
		t.Errorf("compile: %v", err)
	}
	wantFailure(t, invoke(t, h, callOf(signature.Digest, "", "1")), run.OutcomeRejected, run.CodeModule)
}
