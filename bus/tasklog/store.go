package tasklog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/internal/jskit"
)

// Run stores lines until ctx ends, and returns its cause. What is not stored then
// is lost: Flush comes before.
func (l *Store) Run(ctx context.Context) error {
	l.setRunning(true)
	defer l.setRunning(false)
	for {
		flush, err := l.await(ctx)
		if err != nil {
			return err
		}
		if err := l.storeAll(ctx, l.take(time.Now(), flush != nil)); err != nil {
			return err
		}
		if flush != nil {
			close(flush)
		}
		l.logDropped()
	}
}

func (l *Store) setRunning(running bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running = running
}

// await waits until something is to be stored. flush is closed by the caller when
// all that is there now is.
func (l *Store) await(ctx context.Context) (flush chan struct{}, err error) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		var due <-chan time.Time
		if wait, ok := l.due(time.Now()); ok {
			timer.Reset(wait)
			due = timer.C
		}
		select {
		case <-due:
			return nil, nil
		case <-l.wake:
		case flush := <-l.flushes:
			return flush, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// Flush waits until every line that Write took before is stored or given up, or
// ctx ends. Run must be running.
func (l *Store) Flush(ctx context.Context) error {
	flush := make(chan struct{})
	select {
	case l.flushes <- flush:
	case <-ctx.Done():
		return fmt.Errorf("logs: %w", context.Cause(ctx))
	}
	select {
	case <-flush:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("logs: %w", context.Cause(ctx))
	}
}

// logDropped logs the number of lines that were dropped.
func (l *Store) logDropped() {
	l.mu.Lock()
	dropped := l.dropped
	l.dropped = 0
	l.mu.Unlock()
	if dropped > 0 {
		l.config.Log.Warn("lines of tasks' logs were dropped: they came faster than they could be stored",
			"lines", dropped, "buffer", l.config.Buffer)
	}
}

// storeAll stores batches. Messages are under way together, but never two of one
// attempt: its lines keep their order whatever becomes of a message.
func (l *Store) storeAll(ctx context.Context, batches []*logBatch) error {
	limit := int(l.nc.MaxPayload()) - jskit.Overhead
	for len(batches) > 0 {
		flight := make([]logMessage, min(len(batches), logWindow))
		for i := range flight {
			flight[i] = batches[i].next(l.nextID(), limit)
		}
		if err := l.store(ctx, flight); err != nil {
			return err
		}
		batches = slices.DeleteFunc(batches, func(b *logBatch) bool { return len(b.lines) == 0 })
	}
	return nil
}

// nextID is the id of a message, by which the server knows one that is repeated.
func (l *Store) nextID() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sent++
	return l.session + "-" + strconv.FormatUint(l.sent, 36)
}

// store publishes messages until each is acknowledged, or ctx ends. One that the
// stream cannot take is left out.
func (l *Store) store(ctx context.Context, flight []logMessage) error {
	p := jskit.Backoff{Log: l.config.Log, What: "store the logs of tasks"}
	for {
		rest, err := l.send(ctx, flight)
		if len(rest) == 0 {
			p.Done()
			return nil
		}
		if errors.Is(err, nats.ErrConnectionClosed) {
			return fmt.Errorf("logs: %w", err)
		}
		if err := p.Wait(ctx, err); err != nil {
			return err
		}
		flight = rest
	}
}

// send publishes messages without waiting in between, and then waits for what
// became of each. It returns those that are neither stored nor given up, and why
// the last of them is not.
func (l *Store) send(ctx context.Context, flight []logMessage) (rest []logMessage, failed error) {
	if err := jskit.Usable(l.nc); err != nil {
		return flight, err
	}
	futures := make([]jetstream.PubAckFuture, len(flight))
	errs := make([]error, len(flight))
	for i, m := range flight {
		futures[i], errs[i] = l.js.PublishMsgAsync(m.Msg, jetstream.WithRetryAttempts(0))
	}
	for i, m := range flight {
		if errs[i] == nil {
			errs[i] = acknowledged(ctx, futures[i])
		}
		switch {
		case errs[i] != nil && !jskit.Unstorable(errs[i]):
			rest, failed = append(rest, m), errs[i]
			continue
		case errs[i] != nil:
			l.config.Log.Error("lines of a task's log cannot be stored", "run", m.Header.Get(bus.HeaderRun),
				"lines", m.lines, "bytes", len(m.Data), "error", errs[i])
		}
		l.release(m.cost)
	}
	return rest, failed
}

// acknowledged waits for what became of a message: its timeout is the connection's.
func acknowledged(ctx context.Context, future jetstream.PubAckFuture) error {
	select {
	case <-future.Ok():
		return nil
	case err := <-future.Err():
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
