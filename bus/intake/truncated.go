package intake

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/internal/jskit"
	"github.com/flowhost/flowhost/run"
)

// readOn gives FH_TRIGGERS and the place from which it is read: behind what was
// decided last. Without a number the place is a time: the stream has lost its end,
// in a power failure, with an older copy that was put in its place, or because it
// was removed and made again. It may have given numbers that were decided to new
// messages by now. Those were stored later than whatever was decided.
func (in *Intake) readOn(ctx context.Context, decided run.Position) (jetstream.Stream, jskit.Place, error) {
	ctx, cancel := context.WithTimeout(ctx, jskit.APITimeout)
	defer cancel()
	stream, err := in.js.Stream(ctx, bus.StreamTriggers)
	if err != nil {
		return nil, jskit.Place{}, err
	}
	next := jskit.Place{Seq: decided.Seq + 1}
	lost, err := truncated(ctx, stream, decided)
	if err != nil || !lost {
		return stream, next, err
	}
	log := in.log.With("stream", bus.StreamTriggers, "last", stream.CachedInfo().State.LastSeq, "read", decided.Seq)
	if decided.At.IsZero() {
		log.Warn("the stream ends before what was read of it: its numbers continue from there")
		return stream, next, stream.Purge(ctx, jetstream.WithPurgeSequence(next.Seq))
	}
	since := decided.At.Add(time.Nanosecond)
	log.Warn("the stream has lost its end: what it has stored since is read", "since", since)
	return stream, jskit.Place{At: since}, nil
}

// truncated reports whether a stream does not hold what was decided last, but ends
// before it or has another message there. What was decided may have been removed.
func truncated(ctx context.Context, stream jetstream.Stream, decided run.Position) (bool, error) {
	if stream.CachedInfo().State.LastSeq < decided.Seq {
		return true, nil
	}
	if decided.Seq == 0 || decided.At.IsZero() {
		return false, nil // a journal of an earlier version knows no times
	}
	m, err := stream.GetMsg(ctx, decided.Seq)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return false, nil
	}
	return err == nil && m.Time.After(decided.At), err
}
