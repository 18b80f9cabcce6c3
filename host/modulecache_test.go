package host

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestModuleCachePreparesOnceForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := moduleCache{entries: map[string]*entry{}, room: 1 << 30, lifetime: time.Hour}
		var workers, callers sync.WaitGroup
		release, prepared, want := make(chan struct{}), 0, &module{image: &image{}}
		get := func(ctx context.Context) (*module, error) {
			return c.get(ctx, "digest", false, workers.Go, func() (*module, error) {
				prepared++
				<-release
				return want, nil
			})
		}
		impatient, cancel := context.WithCancel(t.Context())
		callers.Go(func() {
			if _, err := get(impatient); !errors.Is(err, context.Canceled) {
				t.Errorf("impatient: %v", err)
			}
		})
		synctest.Wait()
		for range 5 {
			callers.Go(func() {
				if m, err := get(t.Context()); m != want || err != nil {
					t.Errorf("%p, %v", m, err)
				}
			})
		}
		synctest.Wait()
		cancel() // the one who began does not take it away from the others
		synctest.Wait()
		close(release)
		callers.Wait()
		workers.Wait()
		if prepared != 1 {
			t.Errorf("prepared %d times", prepared)
		}
	})
}

func TestModuleCacheForgetsFailures(t *testing.T) {
	t.Parallel()
	c := moduleCache{entries: map[string]*entry{}, room: 1 << 30, lifetime: time.Hour}
	var workers sync.WaitGroup
	broken := errors.New("broken")
	for _, want := range []error{broken, broken, nil, nil} {
		_, err := c.get(t.Context(), "digest", false, workers.Go, func() (*module, error) { return nil, want })
		if !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
	}
	workers.Wait()
}

// A module in use stays, whatever became of those that were used after it.
func TestModuleCacheKeepsWhatIsUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := moduleCache{entries: map[string]*entry{}, room: 1 << 30, lifetime: time.Minute}
		var workers sync.WaitGroup
		get := func(digest string) *entry {
			if _, err := c.get(t.Context(), digest, false, workers.Go, func() (*module, error) { return nil, nil }); err != nil {
				t.Fatal(err)
			}
			workers.Wait()
			return c.entries[digest]
		}
		for _, digest := range []string{"a", "b", "c"} {
			c.leave(get(digest))
			time.Sleep(time.Second)
		}
		used := get("a")
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if len(c.entries) != 1 || c.entries["a"] != used || c.unused.Len() != 1 {
			t.Errorf("%d modules are cached, want the one in use", len(c.entries))
		}
		c.leave(used)
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(c.entries) != 0 || c.unused.Len() != 0 || c.bytes != 0 {
			t.Errorf("%d modules of %d bytes are cached a minute after their last use", len(c.entries), c.bytes)
		}
	})
}

// A module that nobody has asked for but to have it prepared is not kept; one that a call
// asks for meanwhile is.
func TestModuleCacheKeepsNothingBrief(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, calls := range map[string]int{"brief": 0, "called": 1} {
			c := moduleCache{entries: map[string]*entry{}, room: 1 << 30, lifetime: time.Hour}
			var workers, callers sync.WaitGroup
			release := make(chan struct{})
			get := func(brief bool) {
				m, err := c.get(t.Context(), "digest", brief, workers.Go, func() (*module, error) {
					<-release
					return nil, nil
				})
				if m != nil || err != nil {
					t.Errorf("%s: %v, %v", name, m, err)
				}
				c.mu.Lock()
				e := c.entries["digest"]
				c.mu.Unlock()
				c.leave(e)
			}
			callers.Go(func() { get(true) })
			synctest.Wait()
			for range calls {
				callers.Go(func() { get(false) })
				synctest.Wait()
			}
			close(release)
			callers.Wait()
			workers.Wait()
			if got := len(c.entries); got != calls {
				t.Errorf("%s: %d modules are kept", name, got)
			}
			if c.sweeper != nil {
				c.sweeper.Stop()
			}
		}
	})
}
