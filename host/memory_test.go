package host

import "testing"

// withMemory runs fn with a memory in a pool of that many bytes.
func withMemory(t *testing.T, pool, limit int64, fn func(*memory)) {
	t.Helper()
	err := newPool(1, pool, 0).use(t.Context(), 0, func(l *lease) { fn(newMemory(l, limit)) })
	if err != nil {
		t.Fatal(err)
	}
}

func TestMemoryKeepsItsContentAsItGrows(t *testing.T) {
	t.Parallel()
	withMemory(t, 1000, 1000, func(m *memory) {
		copy(m.Reallocate(100), "content")
		for size := uint64(101); size <= 1000; size++ {
			buf := m.Reallocate(size)
			if uint64(len(buf)) != size || string(buf[:7]) != "content" || buf[size-1] != 0 {
				t.Fatalf("at %d bytes: %d, %q", size, len(buf), buf[:7])
			}
			if int64(cap(buf)) > m.lease.bytes {
				t.Fatalf("%d bytes are held, %d are booked", cap(buf), m.lease.bytes)
			}
		}
		if m.refused {
			t.Error("nothing was refused")
		}
	})
}

func TestMemoryIsRefused(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ pool, limit int64 }{
		"over the call's limit": {1000, 500},
		"over the pool's bytes": {500, 1000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			withMemory(t, tt.pool, tt.limit, func(m *memory) {
				if m.Reallocate(500) == nil {
					t.Fatal("500 bytes were to be had")
				}
				if m.Reallocate(501) != nil || !m.refused {
					t.Error("501 bytes were given")
				}
				if m.Reallocate(1<<40) != nil {
					t.Error("a terabyte was given")
				}
				if m.Reallocate(500) == nil {
					t.Error("what was given is there no longer")
				}
			})
		})
	}
}

func TestMemoryIsRarelyCopied(t *testing.T) {
	t.Parallel()
	const page, pages = 64, 4096
	withMemory(t, page*pages, page*pages, func(m *memory) {
		copies, last := 0, 0
		for n := uint64(1); n <= pages; n++ {
			if buf := m.Reallocate(n * page); cap(buf) != last {
				copies, last = copies+1, cap(buf)
			}
		}
		if copies > 60 {
			t.Errorf("%d copies for %d growths", copies, pages)
		}
	})
}
