package known

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flowhost/flowhost/host/internal/compile"
	"github.com/flowhost/flowhost/run"
)

// opened is the store in a directory.
func opened(t *testing.T, dir string) *compile.Store {
	t.Helper()
	cache, store := compile.OpenCache(dir, slog.New(slog.DiscardHandler))
	if cache == nil {
		t.Fatal("no cache")
	}
	t.Cleanup(func() { cache.Close(t.Context()) })
	return store
}

func facts(digest string) Facts {
	return Facts{Size: 7, Within: "limits", Signature: run.Signature{
		Digest: digest, ABI: "flowhost", Functions: []run.FunctionSignature{{Name: "f", Input: []byte(`{"type":"object"}`)}},
		Wants: []run.Want{{Name: "files", Why: "to read"}},
	}}
}

func TestFacts(t *testing.T) {
	t.Parallel()
	store := opened(t, t.TempDir())
	for name, m := range map[string]*Modules{"stored": New(store, "rules"), "in memory": New(nil, "rules")} {
		if f, ok := m.Facts("a"); ok {
			t.Errorf("%s: of an unknown module: %+v", name, f)
		}
		want := facts("a")
		m.Keep(&want)
		got, ok := m.Facts("a")
		if diff := cmp.Diff(want, got); diff != "" || !ok {
			t.Errorf("%s: %t, %s", name, ok, diff)
		}
		if m.Compiled("a") {
			t.Errorf("%s: it is compiled", name)
		}
		m.KeepCompiled("a")
		if !m.Compiled("a") || m.Compiled("b") {
			t.Errorf("%s: compiled: a %t, b %t", name, m.Compiled("a"), m.Compiled("b"))
		}
	}
	if _, ok := New(store, "other rules").Facts("a"); ok {
		t.Error("facts of other rules are used")
	}
	if _, ok := New(store, "rules").Facts("a"); !ok {
		t.Error("another process does not know it")
	}
}

func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	m := New(nil, "")
	f := facts("a")
	f.Signature.Functions[0].Description = strings.Repeat("x", maxHeld/4)
	for _, digest := range []string{"a", "b", "c", "d", "e", "f"} {
		f.Signature.Digest = digest
		m.Keep(&f)
		if _, ok := m.Facts(digest); !ok || m.held > maxHeld {
			t.Errorf("%s: known %t, %d bytes", digest, ok, m.held)
		}
	}
}

func TestSeenFilesAreBounded(t *testing.T) {
	t.Parallel()
	m := New(nil, "")
	id := Identity{text: "id"}
	for n := range maxSeen + 5 {
		m.KeepDigest(strings.Repeat("x", n), "digest", id, id)
	}
	m.KeepDigest("", "digest", id, id)
	if got := len(m.seen.files); got != maxSeen {
		t.Errorf("%d files", got)
	}
	if _, ok := m.Digest("xx", id); ok {
		t.Error("the one that was read first is still known")
	}
	if _, ok := m.Digest("", id); !ok {
		t.Error("the one that was read last is not known")
	}
}
