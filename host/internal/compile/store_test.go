package compile

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestStoredIsLoaded(t *testing.T) {
	t.Parallel()
	own := claimed(t)
	var log bytes.Buffer
	c := openStore(own, slog.New(slog.NewTextHandler(&log, nil)))
	appending := func(content string) func([]byte) ([]byte, error) {
		return func(out []byte) ([]byte, error) { return append(out, content...), nil }
	}
	load := func(key, want string) {
		t.Helper()
		if got := c.Load(Rewritten, key); string(got) != want {
			t.Errorf("%s: %q, want %q", key, got, want)
		}
	}
	load("a", "")
	c.Store(Rewritten, "a", appending("one"))
	c.Store(Rewritten, "b", appending("two"))
	c.Store(Rewritten, "b", appending("three"))
	load("a", "one")
	load("b", "three")
	load("c", "")

	for name, damage := range map[string]func([]byte) []byte{
		"a bit":   func(b []byte) []byte { b[len(b)-1] ^= 1; return b },
		"the sum": func(b []byte) []byte { b[0] ^= 1; return b },
		"cut":     func(b []byte) []byte { return b[:len(b)-1] },
		"short":   func(b []byte) []byte { return b[:3] },
		"empty":   func([]byte) []byte { return nil },
	} {
		c.Store(Rewritten, "a", appending("one"))
		stored, err := os.ReadFile(c.path(Rewritten, "a"))
		if err == nil {
			err = os.WriteFile(c.path(Rewritten, "a"), damage(stored), 0o600)
		}
		if err != nil {
			t.Fatal(name, err)
		}
		load("a", "")
	}
	c.Store(Rewritten, "a", appending("one"))
	load("a", "one")
	if got := c.Load(Known, "a"); got != nil {
		t.Errorf("of another kind: %q", got)
	}

	// A file in the place of another one is not used, although its content is right.
	if err := os.Rename(c.path(Rewritten, "b"), c.path(Rewritten, "a")); err != nil {
		t.Fatal(err)
	}
	load("a", "")
	if log.Len() > 0 {
		t.Error(log.String())
	}

	(*Store)(nil).Store(Rewritten, "a", appending("one"))
	if got := (*Store)(nil).Load(Rewritten, "a"); got != nil {
		t.Errorf("from no cache: %q", got)
	}
}

func TestWhatCannotBeStored(t *testing.T) {
	t.Parallel()
	own := claimed(t)
	var log bytes.Buffer
	c := openStore(own, slog.New(slog.NewTextHandler(&log, nil)))
	c.Store(Rewritten, "a", func([]byte) ([]byte, error) { return nil, errors.New("broken") })
	if err := os.WriteFile(filepath.Join(own, string(Rewritten)), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c.Store(Rewritten, "a", func(out []byte) ([]byte, error) { return out, nil })
	if n := bytes.Count(log.Bytes(), []byte("cannot be stored")); n != 2 || c.Load(Rewritten, "a") != nil {
		t.Errorf("%d warnings: %s", n, &log)
	}
}

// What the cache has written is pruned with the native code, and nothing stays half written.
func TestStoredIsPruned(t *testing.T) {
	t.Parallel()
	own := claimed(t)
	c := openStore(own, slog.New(slog.DiscardHandler))
	c.Store(Rewritten, "a", func(out []byte) ([]byte, error) { return append(out, make([]byte, 100)...), nil })
	writeFile(t, filepath.Join(own, string(Rewritten), moduleName(1)+".123.tmp"), 10, 2*time.Hour)
	if err := pruneCache(own, leastSize); err != nil || c.Load(Rewritten, "a") == nil || len(filesIn(t, own)) != 2 {
		t.Errorf("%v, %v", err, filesIn(t, own))
	}
	if err := pruneCache(own, leastSize-1); err != nil || c.Load(Rewritten, "a") != nil {
		t.Errorf("%v, %v", err, filesIn(t, own))
	}
}
