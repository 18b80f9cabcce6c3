package events

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/internal/jskit"
	"github.com/flowhost/flowhost/run"
)

// eventWindow is how many messages of events are under way together.
const eventWindow = 256

// droppedEvery is how often the publisher logs at most that events were dropped.
const droppedEvery = 10 * time.Second

// publishStored sends the messages of the stream: those of runs that have ended at
// once, the others when they have collected for a while.
func (e *Publisher) publishStored(ctx context.Context) error {
	collecting := time.NewTimer(bundleTime) // not while nothing is open: an idle host costs what wakes it
	defer collecting.Stop()
	armed := true
	var logged time.Time
	for {
		select {
		case <-e.openCome:
			if !armed {
				collecting.Reset(bundleTime)
				armed = true
			}
		case <-collecting.C:
			armed = false
			e.closeAll()
			switch due := time.Since(logged) >= droppedEvery; {
			case due && e.logDropped():
				logged = time.Now()
			case !due && e.dropped():
				signal(e.openCome) // to be logged later
			}
		case <-e.readyCome:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		for {
			batch := e.take()
			if len(batch) == 0 {
				break
			}
			if err := e.store(ctx, batch); err != nil {
				return err
			}
		}
	}
}

// closeAll ends the collecting of all messages.
func (e *Publisher) closeAll() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, b := range e.open {
		e.ready = append(e.ready, b)
	}
	clear(e.open)
	e.last = nil
}

func (e *Publisher) dropped() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.lost != dropped{}
}

// logDropped logs the number of dropped events, if there are any.
func (e *Publisher) logDropped() bool {
	e.mu.Lock()
	lost := e.lost
	e.lost = dropped{}
	e.mu.Unlock()
	if lost == (dropped{}) {
		return false
	}
	e.log.Warn("events were dropped: the NATS server or a listener does not keep up; fh.v1.api.follow has them", "live", lost.live, "stored", lost.stored)
	return true
}

// take gives the next messages to be sent.
func (e *Publisher) take() []*bundle {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := min(len(e.ready), eventWindow)
	batch := e.ready[:n:n]
	e.ready = e.ready[n:]
	e.sending = n
	if n == 0 && len(e.open) == 0 {
		signal(e.sent)
	}
	return batch
}

// store sends messages until the stream has them, or ctx ends. One that it can never
// take is left out.
func (e *Publisher) store(ctx context.Context, batch []*bundle) error {
	defer e.settle(batch)
	delay := jskit.Backoff{Log: e.log, What: "publish events"}
	for {
		failed, err := e.send(ctx, batch)
		switch {
		case err == nil:
			delay.Done()
			return nil
		case errors.Is(err, nats.ErrConnectionClosed):
			return fmt.Errorf("events: %w", err)
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
		batch = failed
		if err := delay.Wait(ctx, err); err != nil {
			return err
		}
	}
}

func (e *Publisher) settle(batch []*bundle) {
	size := 0
	for _, b := range batch {
		size += len(b.body)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.collected = max(e.collected-size, 0)
	e.sending = 0
	for _, b := range batch {
		if len(e.spare) < eventWindow && cap(b.body) <= bundleBytes {
			e.spare = append(e.spare, b.body[:0])
		}
		b.body = nil
	}
}

// send publishes messages, and gives those that are not stored and why the first of
// them is not.
func (e *Publisher) send(ctx context.Context, batch []*bundle) (failed []*bundle, first error) {
	if err := jskit.Usable(e.nc); err != nil {
		return batch, err
	}
	fail := func(b *bundle, err error) {
		if jskit.Unstorable(err) {
			e.log.Error("events cannot be stored", "id", b.id, "run", b.run, "bytes", len(b.body), "error", err)
			return
		}
		failed = append(failed, b)
		if first == nil {
			first = err
		}
	}
	messages := make([]*nats.Msg, len(batch))
	for i, b := range batch {
		messages[i] = b.message()
	}
	if jskit.Burst(ctx, e.js, messages) != nil {
		return nil, nil
	}
	futures := make([]jetstream.PubAckFuture, len(batch))
	for i, b := range batch {
		future, err := e.js.PublishMsgAsync(messages[i], jetstream.WithRetryAttempts(0))
		if err != nil {
			fail(b, err)
		}
		futures[i] = future
	}
	for i, future := range futures {
		if future == nil {
			continue
		}
		select {
		case <-future.Ok():
		case err := <-future.Err():
			fail(batch[i], err)
		case <-ctx.Done():
			return batch, context.Cause(ctx)
		}
	}
	return failed, first
}

func (b *bundle) message() *nats.Msg {
	return &nats.Msg{
		Subject: bus.EventsSubject(b.flow, b.run), Data: append(b.body[:len(b.body):cap(b.body)], ']'),
		Header: nats.Header{jetstream.MsgIDHeader: {b.id}, run.HeaderHops: {b.hops}},
	}
}

// Drain waits until everything that Committed took before is in the stream, or until
// ctx ends. Run must be running, and nothing more may come meanwhile.
func (e *Publisher) Drain(ctx context.Context) error {
	for {
		e.mu.Lock()
		idle := len(e.open) == 0 && len(e.ready) == 0 && e.sending == 0
		e.mu.Unlock()
		if idle {
			return nil
		}
		select {
		case <-e.sent:
		case <-ctx.Done():
			return fmt.Errorf("events: %w", context.Cause(ctx))
		}
	}
}
