package bus

import (
	"context"
	"errors"
	"sort"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/flowhost/flowhost/run"
)

// What followers read of the history: records as their messages have them.

// flowOf gives the flow of a finished run, empty when the history does not have it.
func (h *History) flowOf(ctx context.Context, id run.ID) (string, error) {
	h.mu.Lock()
	r := h.fresh[id]
	h.mu.Unlock()
	if r != nil {
		return r.Flow, nil
	}
	e, err := h.find(ctx, id)
	return e.Flow, err
}

// kept gives a run's record as its message has it.
func (h *History) kept(ctx context.Context, id run.ID) (keptRecord, error) {
	if _, body, whole := h.lookFresh(id); body != nil {
		return keptRecord{body: body, cut: whole != nil}, nil
	}
	msg, err := h.endOf(ctx, id)
	if err != nil || msg == nil {
		return keptRecord{}, err
	}
	return keptRecord{body: msg.Data, cut: msg.Header.Get(HeaderParts) != ""}, nil
}

// endOf gives the message of a run's record, nil when the stream does not have it.
func (h *History) endOf(ctx context.Context, id run.ID) (*jetstream.RawStreamMsg, error) {
	seq, _, _ := h.lookFresh(id)
	if seq == 0 {
		e, err := h.find(ctx, id)
		if err != nil || e.seq == 0 {
			return nil, err
		}
		seq = e.seq
	}
	msg, err := h.message(ctx, seq)
	if errors.Is(err, jetstream.ErrMsgNotFound) || err == nil && msg.Header.Get(HeaderRun) != string(id) {
		return nil, nil
	}
	return msg, err
}

// seqAfter gives a place in the stream before which nothing is after a cursor.
func (h *History) seqAfter(ctx context.Context, c cursor) (uint64, error) {
	info, err := h.publisher.stream.Info(ctx)
	if err != nil {
		return 0, err
	}
	first, count := max(info.State.FirstSeq, 1), int(info.State.LastSeq+1-min(info.State.FirstSeq, info.State.LastSeq+1))
	var failed error
	behind := sort.Search(count, func(i int) bool {
		msg, err := h.messageFrom(ctx, first+uint64(i), historySubjects)
		if err != nil {
			failed = err
		}
		if failed != nil || msg == nil {
			return true
		}
		end, ok := parseKeptEnd(msg.Subject, msg.Header, nil)
		return !ok || end.after(c)
	})
	return first + uint64(max(behind-endsDisorder, 0)), failed
}

// droppedAfter reports whether the stream may have dropped ends of runs of a flow, or
// of all, that come after a cursor, and since when it holds all of them.
func (h *History) droppedAfter(ctx context.Context, c cursor, flow string) (since time.Time, dropped bool, err error) {
	subjects := historySubjects
	if flow != "" {
		subjects = prefixHistory + flow + ".*"
	}
	info, err := h.publisher.stream.Info(ctx, jetstream.WithSubjectFilter(subjects))
	if err != nil {
		return since, false, err
	}
	oldest := func(subject string) error {
		msg, err := h.messageFrom(ctx, 1, subject)
		if err != nil || msg == nil {
			return err
		}
		if end, ok := parseKeptEnd(msg.Subject, msg.Header, nil); !ok || end.after(c) {
			dropped = true
			if msg.Time.After(since) {
				since = msg.Time
			}
		}
		return nil
	}
	if info.State.FirstSeq > 1 {
		err = oldest(historySubjects)
	}
	most := info.Config.MaxMsgsPerSubject
	for subject, count := range info.State.Subjects {
		if err == nil && most > 0 && count >= uint64(most) {
			err = oldest(subject)
		}
	}
	return since, dropped, err
}
