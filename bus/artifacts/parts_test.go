package artifacts_test

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flowhost/flowhost/bus/artifacts"
)

// watched counts the readers of a store.
type watched struct {
	artifacts.Store
	opened, open atomic.Int32
}

type watchedReader struct {
	artifacts.Reader
	of *watched
}

func (w *watched) Open(ctx context.Context, digest string) (artifacts.Reader, error) {
	r, err := w.Store.Open(ctx, digest)
	if err != nil {
		return nil, err
	}
	w.opened.Add(1)
	w.open.Add(1)
	return watchedReader{r, w}, nil
}

func (r watchedReader) Close() error {
	r.of.open.Add(-1)
	return r.Reader.Close()
}

// readParts reads an artifact from its beginning to its end.
func readParts(ctx context.Context, p *artifacts.Parts, digest string, most int) ([]byte, error) {
	var all []byte
	for {
		part, size, found, err := p.ReadPart(ctx, digest, int64(len(all)), most)
		if err != nil || !found || len(part) > most {
			return nil, fmt.Errorf("%d bytes, found: %t, %w", len(part), found, err)
		}
		if all = append(all, part...); len(part) == 0 {
			if int64(len(all)) != size {
				return nil, fmt.Errorf("%d of %d bytes", len(all), size)
			}
			return all, nil
		}
	}
}

// TestPartsOpenOnce reads artifacts of a store part by part, by one and by many.
func TestPartsOpenOnce(t *testing.T) {
	eachStore(t, func(t *testing.T, s site) {
		w := &watched{Store: s.open(t, 0)}
		p := artifacts.NewParts(w)
		data := noise(1, 2<<20+7)
		digest := put(t, w, data, "", time.Now())
		if got, err := readParts(t.Context(), p, digest, 100_003); err != nil || !bytes.Equal(got, data) {
			t.Fatalf("%d bytes, %v", len(got), err)
		}
		if n := w.opened.Load(); n != 1 {
			t.Errorf("one reader opened the artifact %d times", n)
		}
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				if got, err := readParts(t.Context(), p, digest, 300_000); err != nil || !bytes.Equal(got, data) {
					t.Errorf("%d bytes, %v", len(got), err)
				}
			})
		}
		all.Wait()
		if n := w.opened.Load(); n > 4 {
			t.Errorf("four readers opened the artifact %d times", n)
		}
		if part, size, found, err := p.ReadPart(t.Context(), digest, 1<<40, 10); err != nil || !found || len(part) != 0 || size != int64(len(data)) {
			t.Errorf("beyond the end: %d bytes of %d, found: %t, %v", len(part), size, found, err)
		}
		if _, _, found, err := p.ReadPart(t.Context(), digestOf([]byte("other")), 0, 10); found || err != nil {
			t.Errorf("what is not there is found: %t, %v", found, err)
		}
		p.Close()
		if _, err := readParts(t.Context(), p, digest, 1<<20); err != nil {
			t.Error(err)
		}
		if n := w.open.Load(); n != 0 {
			t.Errorf("%d readers are open after the end", n)
		}
	})
}

// few artifacts stay open, and none for long.
func TestPartsAreBounded(t *testing.T) {
	t.Parallel()
	store := openFiles(t, t.TempDir(), 0)
	var digests []string
	for i := range 40 {
		digests = append(digests, put(t, store, noise(uint64(i), 10), "", time.Now()))
	}
	synctest.Test(t, func(t *testing.T) {
		w := &watched{Store: store}
		p := artifacts.NewParts(w)
		defer p.Close()
		for _, digest := range digests {
			if _, _, _, err := p.ReadPart(t.Context(), digest, 0, 5); err != nil {
				t.Fatal(err)
			}
		}
		if n := w.open.Load(); n < 2 || n > 16 {
			t.Errorf("%d readers are open", n)
		}
		time.Sleep(time.Minute)
		if n := w.open.Load(); n != 0 {
			t.Errorf("%d readers are open although nobody came back", n)
		}
	})
}
