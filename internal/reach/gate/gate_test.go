package gate_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flowhost/flowhost/internal/reach/gate"
	"github.com/flowhost/flowhost/run/access"
)

// order notes who was served, in order.
type order struct {
	mu  sync.Mutex
	all []string
}

func (o *order) want(t *testing.T, want ...string) {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	if !slices.Equal(o.all, want) {
		t.Errorf("%q, want %q", o.all, want)
	}
}

func (o *order) note(name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all = append(o.all, name)
}

// Flows take turns for places, and each keeps the order of its operations.
func TestTurnsForPlaces(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := gate.New(access.Limit{Concurrency: 1}, "not done")
		must(t, g.Enter(t.Context(), "many"))
		var served order
		for _, name := range []string{"many 1", "many 2", "many 3", "few 1", "other 1", "few 2"} {
			flow, _, _ := strings.Cut(name, " ")
			go func() {
				must(t, g.Enter(t.Context(), flow))
				served.note(name)
				g.Leave()
			}()
			synctest.Wait()
		}
		g.Leave()
		synctest.Wait()
		served.want(t, "many 1", "few 1", "other 1", "many 2", "few 2", "many 3")
	})
}

// Flows take turns for the rate, which holds.
func TestTurnsForTheRate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := gate.New(access.Limit{Rate: 1, Burst: 1}, "not done")
		began := time.Now()
		var served order
		for _, name := range []string{"many 1", "many 2", "many 3", "many 4", "few 1"} {
			flow, _, _ := strings.Cut(name, " ")
			go func() {
				must(t, g.Start(t.Context(), flow))
				served.note(fmt.Sprint(name, " at ", time.Since(began)))
			}()
			synctest.Wait()
		}
		time.Sleep(10 * time.Second)
		served.want(t, "many 1 at 0s", "many 2 at 1s", "many 3 at 2s", "few 1 at 3s", "many 4 at 4s")
	})
}

// An operation for which the rate leaves no time fails at once, also behind others.
func TestRateWithoutTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := gate.New(access.Limit{Rate: 1, Burst: 1}, "not done")
		must(t, g.Start(t.Context(), "one"))
		ctx, cancel := context.WithCancel(t.Context())
		for range 3 {
			go g.Start(ctx, "one")
			synctest.Wait()
		}
		for flow, least := range map[string]time.Duration{"one": 4 * time.Second, "two": 3 * time.Second} {
			short, stop := context.WithTimeout(ctx, least-time.Millisecond)
			began := time.Now()
			f := g.Start(short, flow)
			stop()
			if f == nil || f.Code != access.CodeTimeout || !f.Retryable || !strings.Contains(f.Message, "not done: the rate") || time.Since(began) != 0 {
				t.Errorf("%s: %+v after %s", flow, f, time.Since(began))
			}
		}
		cancel()
	})
}

// Waiting ends with the context, and what was given up passes on.
func TestGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := gate.New(access.Limit{Concurrency: 1}, "not done")
		must(t, g.Enter(t.Context(), "one"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if f := g.Enter(ctx, "one"); f == nil || f.Code != access.CodeTimeout || !f.Retryable || !strings.HasPrefix(f.Message, "not done: as many operations") {
			t.Errorf("%+v", f)
		}
		canceled, cancel := context.WithCancel(t.Context())
		faults := make(chan *access.Fault, 1)
		go func() { faults <- g.Enter(canceled, "one") }()
		synctest.Wait()
		cancel()
		if f := <-faults; f == nil || f.Code != access.CodeCanceled {
			t.Errorf("%+v", f)
		}
		g.Leave()
		must(t, g.Enter(t.Context(), "two"))
		g.Leave()
	})
}

// A flow that does not stop starting operations gets faults, and others wait as before.
func TestCrowd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := gate.New(access.Limit{Concurrency: 1}, "not done")
		must(t, g.Enter(t.Context(), "crowd"))
		ctx, cancel := context.WithCancel(t.Context())
		for range gate.MaxWaiting {
			go g.Enter(ctx, "crowd")
		}
		synctest.Wait()
		if f := g.Enter(ctx, "crowd"); f == nil || f.Code != access.CodeTooLarge || !f.Retryable {
			t.Errorf("%+v", f)
		}
		entered := make(chan *access.Fault, 1)
		go func() { entered <- g.Enter(t.Context(), "other") }()
		synctest.Wait()
		g.Leave() // to the crowd's first
		g.Leave()
		must(t, <-entered)
		cancel()
		synctest.Wait()
		g.Leave()
		must(t, g.Enter(t.Context(), "crowd"))
	})
}

// A table keeps the gates in use, and of the others so many.
func TestTable(t *testing.T) {
	t.Parallel()
	table := gate.NewTable("not done")
	c := &access.Connection{Folder: "/flows", Name: "api", Limit: access.Limit{Concurrency: 1}}
	used := table.Take(gate.KeyOf(c, "one"))
	if other := table.Take(gate.KeyOf(c, "two")); other != used {
		t.Error("two flows have two gates of one connection")
	}
	unused := table.Take(gate.KeyOf(nil, "one"))
	if unused == table.Take(gate.KeyOf(nil, "two")) {
		t.Error("two flows share a gate without a connection")
	}
	table.Give(unused)
	for n := range 2 * gate.MaxGates {
		table.Give(table.Take(gate.Key{Name: fmt.Sprint(n)}))
	}
	if table.Take(gate.KeyOf(c, "one")) != used {
		t.Error("a gate in use was forgotten")
	}
	if table.Take(gate.KeyOf(nil, "one")) == unused {
		t.Error("an unused gate is kept among so many others")
	}
	changed := *c
	changed.Limit.Concurrency = 2
	if table.Take(gate.KeyOf(&changed, "one")) == used {
		t.Error("a limit that has changed has the former gate")
	}
}

func must(t *testing.T, f *access.Fault) {
	t.Helper()
	if f != nil {
		t.Errorf("%+v", f)
	}
}
