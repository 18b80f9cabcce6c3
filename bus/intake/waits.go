package intake

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/internal/jskit"
	"github.com/flowhost/flowhost/run"
)

// Bounds of reading messages for waits.
const (
	waitReaders  = 16   // waits that are being looked after at once
	waitArrivals = 1024 // messages that the loop has not seen yet; NATS drops what comes then
	waitPending  = 16   // messages for one wait that is being looked after; further ones are left out
)

// awaiting follows the waits for messages. Its loop owns everything; its readers
// ask streams and the engine.
type awaiting struct {
	*Intake
	arrived chan *nats.Msg
	jobs    chan waitJob
	results chan waitResult

	subjects map[string]*awaitedSubject
	waits    map[waitKey]*awaited
	queue    []*awaited // to be looked after
}

type waitKey struct {
	run  run.ID
	wait string
}

// awaitedSubject is one subscription for all waits on a subject.
type awaitedSubject struct {
	sub   *nats.Subscription
	waits []*awaited
}

// awaited is a wait for a message.
type awaited struct {
	run.OpenWait
	busy    bool      // in the queue, or with a reader
	again   bool      // is to be looked after once it is not
	pending []inbound // core messages, for the next look
	enough  bool      // the last of them can end the wait
	next    uint64    // sequence of its stream to read next, 0 before the first message
}

// followWaits ends waits with messages until ctx ends.
func (in *Intake) followWaits(ctx, hard context.Context) {
	f := &awaiting{
		Intake: in, arrived: make(chan *nats.Msg, waitArrivals), jobs: make(chan waitJob), results: make(chan waitResult),
		subjects: map[string]*awaitedSubject{}, waits: map[waitKey]*awaited{},
	}
	var readers sync.WaitGroup
	for range waitReaders {
		readers.Go(func() { f.reader(ctx, hard) })
	}
	f.loop(ctx)
	for _, s := range f.subjects {
		_ = s.sub.Unsubscribe() // fails when the connection is closed, and then it is over anyway
	}
	readers.Wait()
}

func (f *awaiting) loop(ctx context.Context) {
	connected := f.app.StatusChanged(nats.CONNECTED)
	defer f.app.RemoveStatusListener(connected)
	for {
		jobs, job := f.nextJob()
		select {
		case <-f.config.Waits.MessageWaitsChanged():
			f.change(f.config.Waits.MessageWaits())
		case m := <-f.arrived:
			f.arrive(m)
		case jobs <- job:
			f.sent()
		case r := <-f.results:
			f.finish(r)
		case <-connected: // a stream may have kept what passed meanwhile
			for _, w := range f.waits {
				f.schedule(w)
			}
		case <-ctx.Done():
			return
		}
	}
}

// nextJob is what a reader may do next. The channel is nil when there is nothing.
func (f *awaiting) nextJob() (chan<- waitJob, waitJob) {
	if len(f.queue) == 0 {
		return nil, waitJob{}
	}
	w := f.queue[0]
	return f.jobs, waitJob{wait: w.OpenWait, messages: w.pending, next: w.next}
}

// sent notes that a reader has taken the next job.
func (f *awaiting) sent() {
	f.queue[0].pending, f.queue[0].enough = nil, false
	f.queue[0] = nil
	f.queue = f.queue[1:]
}

// schedule has a wait looked after, by one reader at a time.
func (f *awaiting) schedule(w *awaited) {
	if w.busy {
		w.again = true
		return
	}
	w.busy = true
	f.queue = append(f.queue, w)
}

// finish takes a wait back from its reader.
func (f *awaiting) finish(r waitResult) {
	w := f.waits[keyOfWait(r.wait)]
	if w == nil {
		return // it has ended
	}
	again := w.again
	w.busy, w.again, w.next = false, false, r.next
	switch {
	case r.over:
		f.forget(w)
	case again:
		f.schedule(w)
	}
}

// change listens for waits that have begun, and no more for those that have ended.
func (f *awaiting) change(begun, ended []run.OpenWait) {
	for _, e := range ended {
		if w := f.waits[keyOfWait(e)]; w != nil {
			f.forget(w)
		}
	}
	var fresh []*awaited
	for _, b := range begun {
		w := &awaited{OpenWait: b}
		if err := f.listen(w); err != nil {
			f.log.Error("no message can end a wait, only a signal", "run", b.Run, "flow", b.Flow, "wait", b.Wait, "error", err)
			continue
		}
		fresh = append(fresh, w)
	}
	if len(fresh) == 0 {
		return
	}
	// What is published once the server knows of the subscriptions, they bring; what
	// was before, a look at the stream finds.
	if err := f.app.FlushTimeout(jskit.APITimeout); err != nil {
		f.log.Warn("the server will know of the waits once it answers", "error", err)
	}
	for _, w := range fresh {
		f.schedule(w)
	}
}

func (f *awaiting) listen(w *awaited) error {
	s := f.subjects[w.Subject]
	if s == nil {
		if err := bus.CheckSubject(w.Subject); err != nil {
			return err
		}
		sub, err := f.app.ChanSubscribe(w.Subject, f.arrived)
		if err != nil {
			return fmt.Errorf("subject %q: %w", w.Subject, err)
		}
		s = &awaitedSubject{sub: sub}
		f.subjects[w.Subject] = s
	}
	s.waits = append(s.waits, w)
	f.waits[keyOfWait(w.OpenWait)] = w
	return nil
}

// forget lets go of a wait that has ended. A reader may still have it.
func (f *awaiting) forget(w *awaited) {
	delete(f.waits, keyOfWait(w.OpenWait))
	f.queue = slices.DeleteFunc(f.queue, func(other *awaited) bool { return other == w })
	s := f.subjects[w.Subject]
	s.waits = slices.DeleteFunc(s.waits, func(other *awaited) bool { return other == w })
	if len(s.waits) == 0 {
		delete(f.subjects, w.Subject)
		_ = s.sub.Unsubscribe() // fails when the connection is closed
	}
}

func keyOfWait(w run.OpenWait) waitKey { return waitKey{w.Run, w.Wait} }

// arrive gives a core message to the waits on its subject.
func (f *awaiting) arrive(m *nats.Msg) {
	s := f.subjects[m.Subject]
	if s == nil {
		return // they have ended
	}
	for _, w := range s.waits {
		if !w.enough && len(w.pending) < waitPending {
			w.enough = len(m.Data) == 0 || run.CheckPayload(m.Data) == nil
			w.pending = append(w.pending, inbound{subject: m.Subject, header: m.Header, data: m.Data})
		}
		f.schedule(w)
	}
}
