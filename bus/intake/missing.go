package intake

import (
	"context"
	"errors"
	"log/slog"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/internal/jskit"
)

// missing notices messages of FH_TRIGGERS that were acknowledged, and are there no more
// when their turn comes: nothing but the trimmer removes messages, and that after they
// are decided. It belongs to the one who reads the stream.
type missing struct {
	log      *slog.Logger
	fresh    bool   // nothing was decided yet
	reported uint64 // the last sequence that was reported
	total    uint64
}

// gap reports the sequences between what is to be read next, 0 if that is not known, and
// what can be.
func (m *missing) gap(next, found uint64) {
	first := max(next, m.reported+1)
	if next == 0 || first >= found {
		return
	}
	m.reported = found - 1
	m.total += found - first
	why := "they were acknowledged, and no run starts for them: have their senders send them again"
	if m.fresh {
		why += ", unless an earlier journal decided them"
	}
	var lost jskit.Ranges
	lost.Add(first, found-1)
	m.log.Error("messages that ask for runs are missing: "+why, "stream", bus.StreamTriggers,
		"sequences", lost.String(), "messages", lost.Count(), "since_start", m.total)
}

// lookSteps bounds how many messages that cannot be read are passed over at once.
const lookSteps = 1000

// look finds what keeps the server from delivering although the stream does not end
// before what is to be read next: messages that are gone or cannot be read.
func (m *missing) look(ctx context.Context, stream jetstream.Stream, r *jskit.Reader) error {
	if r.Next == 0 {
		return nil
	}
	if err := r.Open(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, jskit.APITimeout)
	defer cancel()
	info, err := stream.Info(ctx) // before that of the consumer: messages stored in between are not missing
	if err != nil || info.State.LastSeq < r.Next {
		return err
	}
	pending, err := r.Pending(ctx)
	if err != nil {
		return err
	}
	seq := info.State.LastSeq + 1
	if pending > 0 {
		if seq, err = nextReadable(ctx, stream, max(r.Next, info.State.FirstSeq), seq); err != nil {
			return err
		}
	}
	if seq == r.Next {
		return nil // it is there, and comes
	}
	m.gap(r.Next, seq)
	r.Close(ctx)
	r.Next = seq
	return nil
}

// nextReadable is the sequence of the first message of a stream that can be read, from
// one on and below an end. The server answers for one that it cannot read, and for all
// behind it, that there is none.
func nextReadable(ctx context.Context, stream jetstream.Stream, from, end uint64) (uint64, error) {
	for seq := from; seq < min(end, from+lookSteps); seq++ {
		found, err := stream.GetMsg(ctx, seq, jetstream.WithGetMsgSubject(bus.PrefixTrigger+"*"))
		if err == nil {
			return min(found.Sequence, end), nil
		}
		if !errors.Is(err, jetstream.ErrMsgNotFound) {
			return 0, err
		}
	}
	return min(end, from+lookSteps), nil
}
