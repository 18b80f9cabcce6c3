package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"testing"
)

// Store is what an engine needs of a store; the engine's documentation of it
// holds.
type Store interface {
	Put(ctx context.Context, name string, data []byte) error
	Get(ctx context.Context, name string) ([]byte, error)
	Delete(ctx context.Context, name string) error
	List(ctx context.Context) ([]string, error)
}

// Open makes an empty store. again gives another handle on the same store, as a
// process that was started again would have it; it may give the same one where that
// is the only way to reach the content.
type Open func(t *testing.T) (store Store, again func() Store)

// Run runs the suite, each test with a new store.
func Run(t *testing.T, open Open) {
	tests := []struct {
		name string
		test func(*testing.T, Open)
	}{
		{"empty store", testEmpty},
		{"get gives what was put", testGet},
		{"put replaces", testReplace},
		{"names", testNames},
		{"sizes", testSizes},
		{"delete", testDelete},
		{"put after delete", testPutAgain},
		{"bytes stay their owner's", testOwnership},
		{"reopened store", testReopen},
		{"concurrent use", testConcurrent},
		{"replacement while it is read", testReplaceWhileRead},
		{"ended context", testContext},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.test(t, open)
		})
	}
}

func testEmpty(t *testing.T, open Open) {
	s, _ := open(t)
	wantList(t, s)
	wantAbsent(t, s, "nothing")
}

func testGet(t *testing.T, open Open) {
	s, _ := open(t)
	for i := range 10 {
		mustPut(t, s, fmt.Sprint("object ", i), fmt.Appendf(nil, "content %d\x00\xff", i))
	}
	for i := range 10 {
		wantContent(t, s, fmt.Sprint("object ", i), fmt.Appendf(nil, "content %d\x00\xff", i))
	}
	wantAbsent(t, s, "object 10")
}

func testReplace(t *testing.T, open Open) {
	s, _ := open(t)
	for i, size := range []int{10, 3 << 20, 1, 0, 2 << 20} {
		data := bytes.Repeat([]byte{byte('a' + i)}, size)
		mustPut(t, s, "it", data)
		wantContent(t, s, "it", data)
	}
	wantList(t, s, "it")
}

// testNames holds that any text is a name, and that List is sorted.
func testNames(t *testing.T, open Open) {
	s, _ := open(t)
	names := []string{
		"b", "a", "10", "9", "A", "sha256:00ff", "a.b.c", "a/b", "../up", "with space", "*", ">", "$O.x", "ü€", "a\nb", "\x00",
		string(bytes.Repeat([]byte("long"), 40)),
	}
	for _, name := range names {
		mustPut(t, s, name, []byte(name))
	}
	slices.Sort(names)
	wantList(t, s, names...)
	for _, name := range names {
		wantContent(t, s, name, []byte(name))
	}
}

func testSizes(t *testing.T, open Open) {
	s, again := open(t)
	sizes := []int{0, 1, 64 << 10, 1<<20 - 1, 1 << 20, 1<<20 + 1, 9 << 20}
	content := func(size int) []byte {
		data := make([]byte, size)
		for i := range data {
			data[i] = byte(i * 7 >> 3)
		}
		return data
	}
	for _, size := range sizes {
		mustPut(t, s, fmt.Sprint(size), content(size))
	}
	s = again()
	for _, size := range sizes {
		wantContent(t, s, fmt.Sprint(size), content(size))
	}
}

func testDelete(t *testing.T, open Open) {
	s, again := open(t)
	for _, name := range []string{"a", "b", "c"} {
		mustPut(t, s, name, bytes.Repeat([]byte(name), 2<<20))
	}
	for _, name := range []string{"b", "b", "never was"} {
		if err := s.Delete(t.Context(), name); err != nil {
			t.Errorf("Delete(%q) = %v", name, err)
		}
	}
	for _, store := range []Store{s, again()} {
		wantAbsent(t, store, "b")
		wantList(t, store, "a", "c")
		wantContent(t, store, "c", bytes.Repeat([]byte("c"), 2<<20))
	}
}

func testPutAgain(t *testing.T, open Open) {
	s, _ := open(t)
	for i := range 3 {
		mustPut(t, s, "it", fmt.Append(nil, i))
		if err := s.Delete(t.Context(), "it"); err != nil {
			t.Fatal(err)
		}
		wantAbsent(t, s, "it")
	}
	mustPut(t, s, "it", []byte("back"))
	wantContent(t, s, "it", []byte("back"))
	wantList(t, s, "it")
}

func testOwnership(t *testing.T, open Open) {
	s, _ := open(t)
	data := []byte("first")
	mustPut(t, s, "it", data)
	copy(data, "other")
	got, err := s.Get(t.Context(), "it")
	if err != nil || string(got) != "first" {
		t.Fatalf("Get = %q, %v", got, err)
	}
	clear(got)
	wantContent(t, s, "it", []byte("first"))
	names, err := s.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	clear(names)
	wantList(t, s, "it")
}

func testReopen(t *testing.T, open Open) {
	s, again := open(t)
	mustPut(t, s, "a", []byte("old"))
	mustPut(t, s, "b", nil)
	s = again()
	wantList(t, s, "a", "b")
	mustPut(t, s, "a", []byte("new"))
	s = again()
	wantContent(t, s, "a", []byte("new"))
	wantContent(t, s, "b", nil)
}

func testConcurrent(t *testing.T, open Open) {
	s, again := open(t)
	var group sync.WaitGroup
	for w := range 4 {
		store := s
		if w%2 == 1 {
			store = again()
		}
		group.Go(func() {
			for i := range 5 {
				name, data := fmt.Sprintf("%d-%d", w, i), bytes.Repeat([]byte{byte(w*5 + i)}, 700<<10)
				if err := store.Put(t.Context(), name, data); err != nil {
					t.Errorf("Put(%q) = %v", name, err)
				}
				if got, err := store.Get(t.Context(), name); err != nil || !bytes.Equal(got, data) {
					t.Errorf("Get(%q) = %d bytes, %v", name, len(got), err)
				}
			}
		})
	}
	group.Wait()
	if names, err := s.List(t.Context()); err != nil || len(names) != 20 {
		t.Errorf("List = %d names, %v, want 20", len(names), err)
	}
}

// testReplaceWhileRead holds that a reader sees one of the contents as a whole.
func testReplaceWhileRead(t *testing.T, open Open) {
	s, again := open(t)
	const rounds, size = 12, 2 << 20
	mustPut(t, s, "it", bytes.Repeat([]byte{0}, size))
	var group sync.WaitGroup
	group.Go(func() {
		for i := range rounds {
			if err := s.Put(t.Context(), "it", bytes.Repeat([]byte{byte(i)}, size)); err != nil {
				t.Errorf("Put = %v", err)
			}
		}
	})
	reader := again()
	group.Go(func() {
		for range 2 * rounds {
			got, err := reader.Get(t.Context(), "it")
			if err != nil || len(got) != size || !bytes.Equal(got, bytes.Repeat(got[:1], size)) {
				t.Errorf("Get gave %d bytes, %v, which is no content that was put", len(got), err)
			}
		}
	})
	group.Wait()
}

func testContext(t *testing.T, open Open) {
	s, _ := open(t)
	mustPut(t, s, "it", []byte("kept"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, got := s.Get(ctx, "it")
	_, list := s.List(ctx)
	for call, err := range map[string]error{
		"Put": s.Put(ctx, "it", []byte("never")), "Get": got, "List": list, "Delete": s.Delete(ctx, "it"),
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s = %v, want context.Canceled", call, err)
		}
	}
	wantContent(t, s, "it", []byte("kept"))
}

func mustPut(t *testing.T, s Store, name string, data []byte) {
	t.Helper()
	if err := s.Put(t.Context(), name, data); err != nil {
		t.Fatalf("Put(%q, %d bytes): %v", name, len(data), err)
	}
}

func wantContent(t *testing.T, s Store, name string, want []byte) {
	t.Helper()
	got, err := s.Get(t.Context(), name)
	if err != nil {
		t.Fatalf("Get(%q): %v", name, err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("Get(%q) = %.30q (%d bytes), want %.30q (%d bytes)", name, got, len(got), want, len(want))
	}
}

func wantAbsent(t *testing.T, s Store, name string) {
	t.Helper()
	if _, err := s.Get(t.Context(), name); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Get(%q) = %v, want fs.ErrNotExist", name, err)
	}
}

func wantList(t *testing.T, s Store, want ...string) {
	t.Helper()
	got, err := s.List(t.Context())
	if err != nil {
		t.Fatalf("List: %v", err)
	}
	if !slices.Equal(got, want) {
		t.Errorf("List = %q, want %q", got, want)
	}
}
