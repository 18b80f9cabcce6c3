package bus

import (
	"context"
	"errors"
	"log/slog"

	"github.com/nats-io/nats.go/jetstream"
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
	lost := ranges{{first, found - 1}}
	m.log.Error("messages that ask for runs are missing: "+why, "stream", StreamTriggers,
		"sequences", lost.String(), "messages", lost.count(), "since_start", m.total)
}

// look finds what keeps the server from delivering although the stream does not end
// before what is to be read next: messages that are gone or cannot be read.
func (m *missing) look(ctx context.Context, stream jetstream.Stream, r *reader) error {
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	info, err := stream.Info(ctx)
	if err != nil || r.next == 0 || info.State.LastSeq < r.next {
		return err
	}
	seq := max(r.next, info.State.FirstSeq)
	for ; seq <= info.State.LastSeq; seq++ {
		_, err := stream.GetMsg(ctx, seq)
		if err == nil {
			break
		}
		if !errors.Is(err, jetstream.ErrMsgNotFound) {
			return err
		}
	}
	seq = min(seq, info.State.LastSeq+1)
	if seq == r.next {
		return nil // it is there, and comes
	}
	m.gap(r.next, seq)
	r.close(ctx)
	r.next = seq
	return nil
}
