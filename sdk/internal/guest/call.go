package guest

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"github.com/flowhost/flowhost/sdk/abi"
)

// Call is one call as the function sees it. It is a context.Context whose end
// is noticed when somebody looks. Once its channel was asked for, a goroutine
// does so now and then, as far as the others let it run: a guest has one thread.
// It is safe for concurrent use by the function's goroutines.
type Call struct {
	host     Host
	log      *slog.Logger
	identity func() abi.Identity
	deadline func() (time.Time, bool)
	inFlight chan struct{} // a place for each operation of goroutines

	mu       sync.Mutex
	idle     int           // goroutines that wait for others: those when the call began, and see Park
	done     chan struct{} // closed under mu, when err is set
	after    map[*func()]struct{}
	err      error
	ended    bool          // the function has returned
	returned chan struct{} // closed then; nil without a watcher
	watcher  sync.WaitGroup
}

func newCall(h Host) *Call {
	return &Call{
		host:     h,
		log:      slog.New(newLogHandler(h)),
		identity: sync.OnceValue(func() abi.Identity { return readIdentity(h) }),
		deadline: sync.OnceValues(func() (time.Time, bool) {
			left, ok := h.TimeLeft()
			if !ok {
				return time.Time{}, false
			}
			return time.Now().Add(left), true
		}),
		inFlight: make(chan struct{}, MaxInFlight),

		done: make(chan struct{}),
		idle: runtime.NumGoroutine(),
	}
}

// end ends the watcher, once the function has returned.
func (c *Call) end() {
	c.mu.Lock()
	c.ended = true
	if c.returned != nil {
		close(c.returned)
	}
	c.mu.Unlock()
	c.watcher.Wait()
}

// Call identifies the call.
func (c *Call) Call() abi.Identity { return c.identity() }

// Config decodes the call's config into v; null leaves v as it is.
func (c *Call) Config(v any) error { return c.decode(abi.FieldConfig, "config", v) }

// Log writes to the log of the attempt.
func (c *Call) Log() *slog.Logger { return c.log }

// Deadline is when the attempt's time is up, on the guest's own clock.
func (c *Call) Deadline() (time.Time, bool) { return c.deadline() }

// Done gives the channel that is closed when the end of the call is noticed: by
// this method, by any other that asks for it, or by the watcher that it starts.
func (c *Call) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.look() == nil && c.returned == nil && !c.ended {
		c.returned = make(chan struct{})
		c.idle++
		c.watcher.Go(func() {
			c.watch()
			c.Park(-1)
		})
	}
	return c.done
}

func (c *Call) watch() {
	for c.host.Wait(c.returned) && c.Err() == nil {
	}
}

// AfterFunc has f run when Done is closed, unless stop is called before. Package context asks
// for it: without it, each context that is derived from the call would have a goroutine.
func (c *Call) AfterFunc(f func()) (stop func() bool) {
	c.Done()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		go f()
		return func() bool { return false }
	}
	if c.after == nil {
		c.after = map[*func()]struct{}{}
	}
	c.after[&f] = struct{}{}
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		_, waits := c.after[&f]
		delete(c.after, &f)
		return waits
	}
}

// Err asks the host whether the call's time is up or it is being canceled.
func (c *Call) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.look()
}

// Canceled asks the host whether the call is being canceled, and how long it may
// take until it is ended.
func (c *Call) Canceled() (left time.Duration, canceled bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	left, canceled = c.host.Canceled()
	if canceled && c.err == nil {
		c.finish(context.Canceled)
	}
	return left, canceled
}

// Value is nil for every key: a call carries nothing but itself.
func (c *Call) Value(any) any { return nil }

// look is called with the lock held, as is finish.
func (c *Call) look() error {
	if c.err != nil {
		return c.err
	}
	if left, limited := c.host.TimeLeft(); limited && left <= 0 {
		c.finish(context.DeadlineExceeded)
	} else if _, canceled := c.host.Canceled(); canceled {
		c.finish(context.Canceled)
	}
	return c.err
}

func (c *Call) finish(err error) {
	c.err = err
	close(c.done)
	for f := range c.after {
		go (*f)()
	}
	c.after = nil
}

// decode reads a field into v. An error is not retryable: another attempt gets
// the same bytes.
func (c *Call) decode(field abi.Field, name string, v any) error {
	data, err := c.host.Read(field)
	if err != nil {
		return fmt.Errorf("reading the %s: %w", name, err)
	}
	if len(data) == 0 {
		return nil
	}
	if err := json.Unmarshal(data, v); err != nil {
		return &codecError{code: name, message: explain(name, err)}
	}
	return nil
}

// readIdentity panics when the host gives none: it then does not speak this ABI,
// and nothing that the function does would be right.
func readIdentity(h Host) (id abi.Identity) {
	data, err := h.Read(abi.FieldIdentity)
	if err == nil {
		err = json.Unmarshal(data, &id)
	}
	if err != nil {
		panic("flowhost: the host gives the call no identity: " + err.Error())
	}
	return id
}
