package flowfiles

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/host"
	"github.com/flowhost/flowhost/run"
)

// catalog knows some modules, and checks others.
type catalog struct {
	known, faulty map[string]bool

	mu    sync.Mutex
	asked []string // to be checked
	both  sync.WaitGroup
}

var errFaulty = errors.New("faulty")

func (c *catalog) Known(_ context.Context, path string) (run.Signature, bool) {
	return run.Signature{Digest: path}, c.known[path]
}

func (c *catalog) Signature(_ context.Context, path string) (run.Signature, error) {
	c.mu.Lock()
	c.asked = append(c.asked, path)
	alone := len(c.asked) == 1
	c.mu.Unlock()
	if !alone {
		c.both.Done()
		c.both.Wait()
	}
	if c.faulty[path] {
		return run.Signature{}, &host.StorageError{Err: errFaulty}
	}
	return run.Signature{Digest: path}, nil
}

func (c *catalog) SignatureOf(context.Context, string) (run.Signature, error) {
	return run.Signature{}, errFaulty
}

func TestChecked(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		known, faulty []string
		loads         int
		asked         []string
	}{
		"all are known":                     {known: []string{"a", "b", "c", "d"}, loads: 1},
		"one is checked within the load":    {known: []string{"a", "b", "d"}, loads: 1, asked: []string{"c"}},
		"the others are at the same time":   {known: []string{"b"}, loads: 2, asked: []string{"a", "c", "d"}},
		"one has a fault":                   {known: []string{"a", "b", "d"}, faulty: []string{"c"}, loads: 1, asked: []string{"c"}},
		"the fault of one is of no other":   {known: []string{"a"}, faulty: []string{"b"}, loads: 2, asked: []string{"b", "c", "d"}},
		"a later fault is of no other, too": {known: []string{"a"}, faulty: []string{"c"}, loads: 2, asked: []string{"b", "c", "d"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &catalog{known: map[string]bool{}, faulty: map[string]bool{}}
			for _, path := range tt.known {
				c.known[path] = true
			}
			for _, path := range tt.faulty {
				c.faulty[path] = true
			}
			c.both.Add(max(len(tt.asked)-1, 0)) // each check but the first waits for the others
			loads, stored := 0, []error{}
			var errs map[string]error
			Checked(t.Context(), flows.Options{Catalog: c}, func(err error) { stored = append(stored, err) }, func(options flows.Options) {
				loads++
				errs = map[string]error{}
				for _, path := range []string{"a", "b", "c", "d", "a"} {
					signature, err := options.Catalog.Signature(t.Context(), path)
					if errs[path] = err; err == nil && signature.Digest != path {
						t.Errorf("%s: %+v", path, signature)
					}
				}
			})
			slices.Sort(c.asked)
			if loads != tt.loads || !slices.Equal(c.asked, tt.asked) || len(stored) != len(tt.faulty) {
				t.Errorf("%d loads, asked for %q, %v", loads, c.asked, stored)
			}
			for path, err := range errs {
				if want := slices.Contains(tt.faulty, path); errors.Is(err, errFaulty) != want || (err != nil) != want {
					t.Errorf("%s: %v", path, err)
				}
			}
		})
	}
}

func TestCheckedWithoutModules(t *testing.T) {
	t.Parallel()
	loads := 0
	Checked(t.Context(), flows.Options{}, nil, func(o flows.Options) {
		if loads++; o.Catalog != nil {
			t.Error("there is a catalog")
		}
	})
	if loads != 1 {
		t.Errorf("%d loads", loads)
	}
}
