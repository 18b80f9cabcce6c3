package intake

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/internal/jskit"
	"github.com/flowhost/flowhost/run"
)

// Bounds of the requests that the engine gets at once. They keep its loop from
// being busy with triggers alone.
const (
	batchRequests = 256
	batchBytes    = 1 << 20
)

// asked is a request for a run, and the message of a stream that it was made of.
type asked struct {
	request run.Request
	message inbound
}

// decide gives messages of one source to the engine, in their order, again and
// again until each is taken, or refused for good and stored as a dead letter. None
// is given before the one ahead of it is decided: the engine would take that one
// for decided. alive is called in between. An error means that ctx ended: what has
// not been decided then comes again.
func (in *Intake) decide(ctx, hard context.Context, all []asked, alive func()) error {
	p := jskit.Backoff{Log: in.log.With("source", all[0].request.Position.Source), What: "start a run"}
	for len(all) > 0 {
		decided, err := in.submitInOrder(hard, all)
		all = all[decided:]
		var wrong *run.RequestError
		if errors.As(err, &wrong) {
			if err = in.giveUp(ctx, hard, all[0], wrong); err == nil {
				all = all[1:]
			}
		}
		if err == nil {
			p.Done()
			continue
		}
		if err := p.Wait(ctx, err); err != nil {
			return err
		}
		alive()
	}
	return nil
}

// submitInOrder submits until one is not taken, which the error is about. It gives
// the number of those taken before.
func (in *Intake) submitInOrder(ctx context.Context, all []asked) (decided int, err error) {
	if err := in.unready(); err != nil {
		return 0, err
	}
	requests := make([]run.Request, len(all))
	for i, a := range all {
		requests[i] = a.request
	}
	return in.starter.SubmitBatch(ctx, requests)
}

// giveUp stores a refused message as a dead letter and marks it as decided.
func (in *Intake) giveUp(ctx, hard context.Context, a asked, why *run.RequestError) error {
	position := a.request.Position
	id := fmt.Sprintf("%s/%d/%d", position.Source, position.Seq, position.At.UnixNano()) // a number alone may be given again
	if err := in.storeDeadLetter(ctx, deadLetter{flow: a.request.Flow, trigger: a.request.Trigger.Name, inbound: a.message, why: why, id: id}); err != nil {
		return err
	}
	return in.starter.Decide(hard, position) // only now: a crash in between must not lose the message
}

// readTriggers reads FH_TRIGGERS from the engine's watermark on, until ctx ends.
func (in *Intake) readTriggers(ctx, hard context.Context) {
	p := jskit.Backoff{Log: in.log, What: "read stream " + bus.StreamTriggers}
	lost := missing{log: in.log}
	for {
		err := in.readFromWatermark(ctx, hard, &lost, p.Done)
		if p.Wait(ctx, err) != nil {
			return
		}
	}
}

// readFromWatermark returns with an error. going is called when messages, or their
// absence, could be seen.
func (in *Intake) readFromWatermark(ctx, hard context.Context, lost *missing, going func()) error {
	decided, err := in.starter.Watermark(ctx, bus.SourceTriggers)
	if err != nil {
		return err
	}
	stream, from, err := in.readOn(ctx, decided)
	if err != nil {
		return err
	}
	trim := trimmer{stream: stream, log: in.log, every: 2 * stream.CachedInfo().Config.Duplicates, last: time.Now()}
	r := jskit.Reader{JS: in.js, Stream: bus.StreamTriggers, Subject: bus.PrefixTrigger + "*", Next: from.Seq, Since: from.At}
	defer r.Close(ctx)
	lost.fresh = decided.Seq == 0
	if err := lost.look(ctx, stream, &r); err != nil {
		return err
	}
	var batch triggerBatch
	flush := func() error {
		if len(batch.asked) == 0 {
			return nil
		}
		if err := in.decide(ctx, hard, batch.asked, func() {}); err != nil {
			return err
		}
		trim.decided(ctx, batch.last)
		batch = triggerBatch{}
		return nil
	}
	for {
		next := r.Next
		err := r.Fetch(ctx, func(m jetstream.Msg, at jskit.Place) error {
			lost.gap(r.Next, at.Seq)
			batch.add(m, at, from.At)
			if at.More && !batch.full() {
				return nil
			}
			return flush()
		})
		if err == nil || errors.Is(err, jskit.ErrGap) {
			err = flush() // what came before the gap
		}
		if err == nil && r.Next == next {
			err = lost.look(ctx, stream, &r)
		}
		if err != nil {
			return err
		}
		going()
		if r.Next > 0 {
			trim.decided(ctx, r.Next-1)
		}
	}
}

// triggerBatch is messages of FH_TRIGGERS that follow each other.
type triggerBatch struct {
	asked []asked
	bytes int
	last  uint64 // sequence of the last one
}

func (b *triggerBatch) full() bool { return len(b.asked) >= batchRequests || b.bytes >= batchBytes }

// add takes a message of a stream that is read from a time on, if one is given: no
// position is before it, so that the engine takes all of them for new ones.
func (b *triggerBatch) add(m jetstream.Msg, at jskit.Place, since time.Time) {
	msg := inbound{subject: m.Subject(), header: m.Headers(), data: m.Data()}
	req := newRequest(strings.TrimPrefix(msg.subject, bus.PrefixTrigger), "", run.TriggerMessage, msg, at.At)
	req.Position = run.Position{Source: bus.SourceTriggers, Seq: at.Seq, At: at.At}
	if at.At.Before(since) {
		req.Position.At = since // the server's clock was set back
	}
	if req.Key == "" {
		req.Key = keyOf(msg.header.Get(jetstream.MsgIDHeader))
	}
	b.asked = append(b.asked, asked{req, msg})
	b.bytes += len(msg.data)
	b.last = at.Seq
}
