package known

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A file is known as long as nothing about it changes.
func TestDigests(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(path, beside string) error{
		"nothing": func(string, string) error { return nil },
		"other bytes, same size and time": func(path, _ string) error {
			info, err := os.Stat(path)
			if err == nil {
				err = os.WriteFile(path, []byte("ENO"), 0o600)
			}
			if err == nil {
				err = os.Chtimes(path, info.ModTime(), info.ModTime())
			}
			return err
		},
		"replaced": func(path, _ string) error {
			if err := os.WriteFile(path+".new", []byte("one"), 0o600); err != nil {
				return err
			}
			return os.Rename(path+".new", path)
		},
		"a manifest": func(_, beside string) error { return os.WriteFile(beside, []byte("{}"), 0o600) },
		"gone":       func(path, _ string) error { return os.Remove(path) },
		"a link to another": func(path, _ string) error {
			if err := os.WriteFile(path+".other", []byte("two"), 0o600); err != nil {
				return err
			}
			if err := os.Remove(path); err != nil {
				return err
			}
			return os.Symlink(path+".other", path)
		},
		"a directory": func(path, _ string) error {
			if err := os.Remove(path); err != nil {
				return err
			}
			return os.Mkdir(path, 0o700)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path, beside := filepath.Join(dir, "a.wasm"), filepath.Join(dir, "plugin.json")
			if err := os.WriteFile(path, []byte("one"), 0o600); err != nil {
				t.Fatal(err)
			}
			store := opened(t, t.TempDir())
			m := New(store, "")
			before := Identify(path, beside)
			m.KeepDigest(path, "digest", before, before)
			if _, ok := m.Digest(path, before); ok {
				t.Error("a file that has just changed is known")
			}
			m.Now = func() time.Time { return time.Now().Add(time.Hour) }
			m.KeepDigest(path, "digest", Identity{"another", before.changed}, before)
			if _, ok := m.Digest(path, before); ok {
				t.Error("a file that changed while it was read is known")
			}
			m.KeepDigest(path, "digest", before, before)
			if err := change(path, beside); err != nil {
				t.Fatal(err)
			}
			for _, m := range []*Modules{m, New(store, "")} {
				if digest, ok := m.Digest(path, Identify(path, beside)); ok != (name == "nothing") {
					t.Errorf("%q, %t", digest, ok)
				}
			}
		})
	}
}
