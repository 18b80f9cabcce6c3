package host_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/flowhost/flowhost/host"
)

// A host uses what an earlier one has stored of a module, unless it is damaged. It stores
// no module that is refused.
func TestStoredRewrites(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	call := func() {
		t.Helper()
		h, err := host.New(t.Context(), host.Config{CacheDir: dir, CompileCommand: compileCommand()})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.Signature(t.Context(), writeFile(t, "wrong.wasm", task(opI32Add).bytes())); err == nil {
			t.Error("a module with wrong types is taken")
		}
		wantOutput(t, invoke(t, h, callOf(loadBytes(t, h, noop().bytes()), "", "1")), "null")
		if err := h.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	call()
	files, err := filepath.Glob(filepath.Join(dir, "flowhost-modules", "rewritten-*", "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%q, %v", files, err)
	}
	whole, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	age := func() {
		t.Helper()
		if err := os.Chtimes(files[0], time.Unix(1, 0), time.Unix(1, 0)); err != nil {
			t.Fatal(err)
		}
	}
	isNew := func() bool {
		t.Helper()
		info, err := os.Stat(files[0])
		if err != nil {
			t.Fatal(err)
		}
		return info.ModTime().After(time.Unix(1, 0))
	}
	age()
	call()
	if isNew() {
		t.Error("the module was stored again: the host has not used what was there")
	}
	if err := os.WriteFile(files[0], whole[:len(whole)-1], 0o600); err != nil {
		t.Fatal(err)
	}
	age()
	call()
	if again, err := os.ReadFile(files[0]); err != nil || string(again) != string(whole) || !isNew() {
		t.Errorf("a damaged file was not replaced: %v", err)
	}
}

// A damaged cache costs time and a line in the log: no module is blamed for it.
func TestDamagedCache(t *testing.T) {
	t.Parallel()
	replace := func(content func([]byte) []byte) func(t *testing.T, file string) {
		return func(t *testing.T, file string) {
			whole, err := os.ReadFile(file)
			if err == nil {
				err = os.WriteFile(file, content(whole), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, damage := range map[string]func(t *testing.T, file string){
		"empty":     replace(func(b []byte) []byte { return nil }),
		"cut":       replace(func(b []byte) []byte { return b[:len(b)/2] }),
		"wrong bit": replace(func(b []byte) []byte { b[len(b)/2] ^= 1; return b }),
		"no directory to write to": func(t *testing.T, file string) {
			if err := os.RemoveAll(filepath.Dir(file)); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opened := func(dir string) *host.Host {
				t.Helper()
				h, err := host.New(t.Context(), host.Config{CacheDir: dir, CompileCommand: compileCommand()})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() {
					if err := h.Close(context.WithoutCancel(t.Context())); err != nil {
						t.Error(err)
					}
				})
				return h
			}
			dir := t.TempDir()
			h := opened(dir)
			wantOutput(t, invoke(t, h, callOf(loadBytes(t, h, noop().bytes()), "", "1")), "null")
			files, err := filepath.Glob(filepath.Join(dir, "flowhost-modules", "wazero-*", "*"))
			if err != nil || len(files) != 1 {
				t.Fatalf("%q, %v", files, err)
			}
			again := opened(dir)
			damage(t, files[0])
			wantOutput(t, invoke(t, again, callOf(loadBytes(t, again, noop().bytes()), "", "1")), "null")
		})
	}
}
