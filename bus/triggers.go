package bus

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/flowhost/flowhost/run"
)

// decide gives a message of a stream to the engine, again and again until it is
// taken, or refused for good and stored as a dead letter. alive is called in
// between. An error means that ctx ended: nothing is decided then.
func (in *Intake) decide(ctx, hard context.Context, req run.Request, m inbound, alive func()) error {
	p := patience{log: in.log.With("flow", req.Flow, "trigger", req.Trigger.Name), what: "start a run"}
	for {
		_, err := in.starter.Submit(hard, req)
		if err == nil {
			p.done()
			return nil
		}
		var wrong *run.RequestError
		if errors.As(err, &wrong) {
			id := fmt.Sprintf("%s/%d", req.Position.Source, req.Position.Seq)
			err = in.bury(ctx, letter{flow: req.Flow, inbound: m, why: wrong, id: id})
			if err == nil { // only now: a crash in between must not lose the message
				err = in.starter.Decide(hard, req.Position)
			}
			if err == nil {
				return nil
			}
		}
		if err := p.wait(ctx, err); err != nil {
			return err
		}
		alive()
	}
}

// readTriggers reads FH_TRIGGERS from the engine's watermark on, until ctx ends.
func (in *Intake) readTriggers(ctx, hard context.Context) {
	p := patience{log: in.log, what: "read stream " + StreamTriggers}
	for {
		err := in.readFromWatermark(ctx, hard, p.done)
		if p.wait(ctx, err) != nil {
			return
		}
	}
}

// readFromWatermark returns with an error. going is called when messages, or their
// absence, could be seen.
func (in *Intake) readFromWatermark(ctx, hard context.Context, going func()) error {
	decided, err := in.starter.Watermark(ctx, SourceTriggers)
	if err != nil {
		return err
	}
	stream, err := in.numberedAfter(ctx, decided)
	if err != nil {
		return err
	}
	trim := trimmer{stream: stream, log: in.log, every: 2 * stream.CachedInfo().Config.Duplicates, last: time.Now()}
	r := reader{js: in.js, stream: StreamTriggers, subject: prefixTrigger + "*", next: decided + 1}
	defer r.close(ctx)
	for {
		err := r.fetch(ctx, func(m jetstream.Msg, at place) error {
			if err := in.takeTrigger(ctx, hard, m, at); err != nil {
				return err
			}
			trim.decided(ctx, at.seq)
			return nil
		})
		if err != nil && !errors.Is(err, errGap) {
			return err
		}
		going()
		trim.decided(ctx, r.next-1)
	}
}

func (in *Intake) takeTrigger(ctx, hard context.Context, m jetstream.Msg, at place) error {
	msg := inbound{subject: m.Subject(), header: m.Headers(), data: m.Data()}
	req := newRequest(strings.TrimPrefix(msg.subject, prefixTrigger), "", run.TriggerMessage, msg, at.at)
	req.Position = run.Position{Source: SourceTriggers, Seq: at.seq}
	return in.decide(ctx, hard, req, msg, func() {})
}

// numberedAfter makes sure that the stream's next message has a sequence above the
// watermark. It has not when the stream was removed and made again, or lost its
// end in a power failure; the engine would take new messages for decided ones.
func (in *Intake) numberedAfter(ctx context.Context, decided uint64) (jetstream.Stream, error) {
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	stream, err := in.js.Stream(ctx, StreamTriggers)
	if err != nil {
		return nil, err
	}
	if last := stream.CachedInfo().State.LastSeq; last < decided {
		in.log.Warn("the stream ends before what was read of it: its numbers go on from there", "stream", StreamTriggers, "last", last, "read", decided)
		if err := stream.Purge(ctx, jetstream.WithPurgeSequence(decided+1)); err != nil {
			return nil, err
		}
	}
	return stream, nil
}
