package guest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
)

// waysOut notes how operations were performed.
type waysOut struct {
	scripted
	alone, beside int
}

func (h *waysOut) Alone(string, []byte, []byte, bool) (Reply, error) {
	h.alone++
	return Reply{}, nil
}

func (h *waysOut) Operate(context.Context, string, []byte, []byte) (Reply, error) {
	h.beside++
	return Reply{}, nil
}

// Operations take the short way as long as no goroutine of the function could do something
// meanwhile. The goroutines that do nothing do not count.
func TestOperationsAlone(t *testing.T) { //nolint:paralleltest // it counts the goroutines of the process
	type derived struct{ *Call } // as sdk.Context is
	for _, c := range []struct {
		name  string
		alone bool
		ctx   func(c *Call) context.Context
	}{
		{"the call", true, func(c *Call) context.Context { return derived{c} }},
		{"a context that does not end", true, func(*Call) context.Context { return context.Background() }},
		{"the watcher", true, func(c *Call) context.Context { c.Done(); return c }},
		{"a context that was derived", false, func(c *Call) context.Context {
			ctx, cancel := context.WithCancel(c)
			t.Cleanup(cancel)
			return ctx
		}},
		{"beside one that was derived", true, func(c *Call) context.Context {
			_, cancel := context.WithCancel(derived{c})
			t.Cleanup(cancel)
			return c
		}},
		{"a goroutine", false, func(c *Call) context.Context { waiting(t); return c }},
		{"a goroutine that is parked", true, func(c *Call) context.Context { waiting(t); c.Park(1); return c }},
		{"another one", false, func(c *Call) context.Context { waiting(t); c.Park(1); waiting(t); return c }},
		{"one that is parked no more", false, func(c *Call) context.Context { waiting(t); c.Park(1); c.Park(-1); return c }},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := new(waysOut)
			Serve(h, func(call *Call) ([]byte, error) {
				_, err := call.Operate(c.ctx(call), "http", new(Head), nil)
				return []byte("null"), err
			})
			if alone := h.alone == 1; alone != c.alone || h.alone+h.beside != 1 {
				t.Errorf("%d alone, %d beside others", h.alone, h.beside)
			}
		})
	}
}

// waiting starts a goroutine that waits until the test ends.
func waiting(t *testing.T) {
	t.Helper()
	end, ended := make(chan struct{}), make(chan struct{})
	go func() { <-end; close(ended) }()
	t.Cleanup(func() { close(end); <-ended })
}

// slow has operations that end when they are let go.
type slow struct {
	scripted
	started chan struct{}
	letGo   chan struct{}
}

func (h *slow) Operate(context.Context, string, []byte, []byte) (Reply, error) {
	h.started <- struct{}{}
	<-h.letGo
	return Reply{}, nil
}

// Goroutines that have more operations than a host takes at once wait for one another, as
// long as their contexts last.
func TestOperationsTakeTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &slow{started: make(chan struct{}, 1000), letGo: make(chan struct{})}
		during(t, h, func(c *Call) {
			var all sync.WaitGroup
			for range 200 {
				all.Go(func() {
					if _, err := c.Operate(c, "http", new(Head), nil); err != nil {
						t.Error(err)
					}
				})
			}
			synctest.Wait()
			if len(h.started) != MaxInFlight {
				t.Errorf("%d operations are under way", len(h.started))
			}
			ctx, cancel := context.WithCancel(c)
			gaveUp := make(chan error)
			go func() {
				_, err := c.Operate(ctx, "http", new(Head), nil)
				gaveUp <- err
			}()
			synctest.Wait()
			cancel()
			if err := <-gaveUp; !errors.Is(err, context.Canceled) {
				t.Errorf("given up with %v", err)
			}
			close(h.letGo)
			all.Wait()
			if len(h.started) != 200 {
				t.Errorf("%d operations were performed", len(h.started))
			}
		})
	})
}

// AfterFunc runs its function once the end is noticed, unless it was stopped.
func TestAfterFunc(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &scripted{}
		during(t, h, func(c *Call) {
			ran := make(chan string, 4)
			c.AfterFunc(func() { ran <- "first" })
			stop := c.AfterFunc(func() { ran <- "stopped" })
			if !stop() || stop() {
				t.Error("stopping it twice")
			}
			child, cancel := context.WithCancel(c)
			defer cancel()
			h.stop = true
			if c.Err() == nil || <-ran != "first" {
				t.Error("it did not run")
			}
			<-child.Done()
			late := c.AfterFunc(func() { ran <- "late" })
			if <-ran != "late" || late() || stop() {
				t.Error("after the end")
			}
			synctest.Wait()
			if len(ran) != 0 {
				t.Errorf("%q ran", <-ran)
			}
		})
	})
}
