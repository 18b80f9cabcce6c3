package intake

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/internal/jskit"
)

func (t Subscription) check() error {
	err := errors.Join(bus.CheckToken(t.Flow), bus.CheckToken(t.Trigger))
	if t.Stream == "" || t.Subject != "" {
		err = errors.Join(err, bus.CheckSubject(t.Subject))
	}
	if t.Stream != "" {
		err = errors.Join(err, bus.CheckStream(t.Stream))
	}
	if t.Durable != "" {
		err = errors.Join(err, bus.CheckToken(t.Durable))
	}
	return err
}

func checkAll(triggers []Subscription) error {
	for _, t := range triggers {
		if err := t.check(); err != nil {
			return fmt.Errorf("trigger %q of flow %q: %w", t.Trigger, t.Flow, err)
		}
	}
	return nil
}

// listening is the message triggers that an intake listens to, which change with
// the flows.
type listening struct {
	*Intake
	first []Subscription // to begin with

	changing sync.Mutex
	requests *requests       // guarded by changing, as is what follows; nil until the intake runs
	ctx      context.Context // of the intake; it ends before hard does
	hard     context.Context
	active   map[Subscription]*listener // nil once the intake stops

	following sync.WaitGroup // followers of streams
}

// listener is one trigger that is listened to.
type listener struct {
	stop  func()          // asks for the end: messages that have arrived are still handled
	ended <-chan struct{} // closed then
}

// Listen puts triggers in place of those that the intake listens to. Those that
// are the same stay untouched: nothing of theirs is lost or comes twice. It waits
// for the end of those that go, calls swap, which changes whatever else changes
// with them, and begins to listen to those that come. An error of swap changes
// nothing. Listen waits for the intake to run.
func (in *Intake) Listen(ctx context.Context, triggers []Subscription, swap func() error) error {
	if err := checkAll(triggers); err != nil {
		return err
	}
	select {
	case <-in.ready:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return in.listening.change(ctx, triggers, swap)
}

func (l *listening) change(ctx context.Context, triggers []Subscription, swap func() error) error {
	l.changing.Lock()
	defer l.changing.Unlock()
	if l.active == nil {
		return errStopping
	}
	wanted := make(map[Subscription]bool, len(triggers))
	for _, t := range triggers {
		wanted[t] = true
	}
	gone, err := l.leave(ctx, wanted)
	if err != nil {
		return err
	}
	if err = swap(); err != nil {
		triggers = gone
	}
	err = errors.Join(err, l.enter(triggers))
	if flushed := l.app.FlushTimeout(jskit.APITimeout); flushed != nil {
		l.log.Warn("the server will know of the triggers once it answers", "error", flushed)
	}
	return err
}

// leave ends the listening to triggers that are not wanted any more, and gives
// those.
func (l *listening) leave(ctx context.Context, wanted map[Subscription]bool) (gone []Subscription, err error) {
	var ending []*listener
	for t, active := range l.active {
		if wanted[t] {
			continue
		}
		active.stop()
		delete(l.active, t)
		gone, ending = append(gone, t), append(ending, active)
	}
	for _, e := range ending {
		select {
		case <-e.ended:
		case <-ctx.Done():
			return gone, context.Cause(ctx)
		}
	}
	return gone, nil
}

// begin listens to the first triggers. It returns once the server knows of them,
// and of all that was subscribed to before: it waits for one that is away, until ctx
// ends.
func (l *listening) begin(ctx, hard context.Context, d *requests) error {
	l.changing.Lock()
	defer l.changing.Unlock()
	l.requests, l.ctx, l.hard, l.active = d, ctx, hard, map[Subscription]*listener{}
	err := l.enter(l.first)
	if err == nil {
		err = l.known(ctx)
	}
	if err != nil {
		l.end()
	}
	return err
}

// known waits until the server knows of all subscriptions. A connection that breaks
// registers them when it is restored.
func (l *listening) known(ctx context.Context) error {
	p := jskit.Backoff{Log: l.log, What: "listen to messages"}
	for {
		err := jskit.Usable(l.app)
		if err == nil {
			err = jskit.Usable(l.nc)
		}
		if err == nil {
			err = errors.Join(l.app.FlushTimeout(jskit.APITimeout), l.nc.FlushTimeout(jskit.APITimeout))
		}
		if err == nil {
			p.Done()
			return nil
		}
		if l.app.IsClosed() || l.nc.IsClosed() {
			return err
		}
		if err := p.Wait(ctx, err); err != nil {
			return err
		}
	}
}

// enter listens to those of the triggers that it does not listen to yet.
func (l *listening) enter(triggers []Subscription) error {
	var errs []error
	for _, t := range triggers {
		if l.active[t] != nil {
			continue
		}
		entered, err := l.listen(t)
		if err != nil {
			errs = append(errs, fmt.Errorf("trigger %q of flow %q: %w", t.Trigger, t.Flow, err))
			continue
		}
		l.active[t] = entered
	}
	return errors.Join(errs...)
}

func (l *listening) listen(t Subscription) (*listener, error) {
	ended := make(chan struct{})
	if t.Stream != "" {
		ctx, stop := context.WithCancel(l.ctx)
		l.following.Go(func() {
			defer close(ended)
			defer stop()
			l.follow(ctx, l.hard, t)
		})
		return &listener{stop, ended}, nil
	}
	sub, err := l.app.QueueSubscribe(t.Subject, queueGroup(t), func(m *nats.Msg) { l.requests.message(l.hard, t, m) })
	if err != nil {
		return nil, err
	}
	end := sync.OnceFunc(func() { close(ended) })
	if err := sub.SetPendingLimits(pendingRequests, pendingBytes); err != nil {
		return nil, err
	}
	sub.SetClosedHandler(func(string) { end() })
	return &listener{stop: func() {
		if sub.Drain() != nil { // the connection is closed, and it is over anyway
			end()
		}
	}, ended: ended}, nil
}

// queueGroup is a trigger's own: in one group for all, a message would reach only
// one of several triggers whose subjects overlap.
func queueGroup(t Subscription) string { return "flowhost." + t.Flow + "." + t.Trigger }

// stop ends the listening for good, without waiting for messages that are here
// already.
func (l *listening) stop() {
	l.changing.Lock()
	defer l.changing.Unlock()
	l.end()
}

func (l *listening) end() {
	for _, active := range l.active {
		active.stop()
	}
	l.active = nil
}

// wait waits for those that read streams.
func (l *listening) wait() { l.following.Wait() }
