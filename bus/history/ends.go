package history

import (
	"context"
	"errors"
	"sort"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/internal/jskit"
	"github.com/flowhost/flowhost/run"
)

// What followers read of the history: records as their messages have them.

// FlowOf gives the flow of a finished run, empty when the history does not have it.
func (h *Store) FlowOf(ctx context.Context, id run.ID) (string, error) {
	h.mu.Lock()
	r := h.fresh[id]
	h.mu.Unlock()
	if r != nil {
		return r.entry.Flow, nil
	}
	e, err := h.find(ctx, id)
	return e.Flow, err
}

// Kept gives a run's record as its message has it.
func (h *Store) Kept(ctx context.Context, id run.ID) (Kept, error) {
	if _, body, whole := h.lookFresh(id); body != nil {
		return Kept{Body: body, Cut: whole != nil}, nil
	}
	msg, err := h.EndOf(ctx, id)
	if err != nil || msg == nil {
		return Kept{}, err
	}
	return Kept{Body: msg.Data, Cut: msg.Header.Get(bus.HeaderParts) != ""}, nil
}

// EndOf gives the message of a run's record, nil when the stream does not have it.
func (h *Store) EndOf(ctx context.Context, id run.ID) (*jetstream.RawStreamMsg, error) {
	seq, _, _ := h.lookFresh(id)
	if seq == 0 {
		e, err := h.find(ctx, id)
		if err != nil || e.seq == 0 {
			return nil, err
		}
		seq = e.seq
	}
	msg, err := h.message(ctx, seq)
	if errors.Is(err, jetstream.ErrMsgNotFound) || err == nil && msg.Header.Get(bus.HeaderRun) != string(id) {
		return nil, nil
	}
	return msg, err
}

// Reader reads the stream from a sequence on, at most so many messages at a time.
func (h *Store) Reader(subject string, next uint64, most int) jskit.Reader {
	r := h.publisher.Reader(subject, next)
	r.Pull, r.Most = readPull, most
	return r
}

// endsDisorder is how many messages before a place the history is read from: after
// a crash of the server records may be there later than those that follow them.
const endsDisorder = 8192

// SeqAfter gives a place in the stream before which nothing is after an event of the journal.
func (h *Store) SeqAfter(ctx context.Context, revision uint64, index int) (uint64, error) {
	info, err := h.publisher.Stream().Info(ctx)
	if err != nil {
		return 0, err
	}
	first, count := max(info.State.FirstSeq, 1), int(info.State.LastSeq+1-min(info.State.FirstSeq, info.State.LastSeq+1))
	var failed error
	behind := sort.Search(count, func(i int) bool {
		msg, err := h.MessageFrom(ctx, first+uint64(i), bus.HistorySubjects)
		if err != nil {
			failed = err
		}
		if failed != nil || msg == nil {
			return true
		}
		end, ok := ParseEnd(msg.Subject, msg.Header, nil)
		return !ok || end.After(revision, index)
	})
	return first + uint64(max(behind-endsDisorder, 0)), failed
}

// DroppedAfter reports whether the stream may have dropped ends of runs of a flow, or
// of all, that come after an event of the
// journal, and since when it holds all of them.
func (h *Store) DroppedAfter(ctx context.Context, revision uint64, index int, flow string) (since time.Time, dropped bool, err error) {
	subjects := bus.HistorySubjects
	if flow != "" {
		subjects = bus.PrefixHistory + flow + ".*"
	}
	info, err := h.publisher.Stream().Info(ctx, jetstream.WithSubjectFilter(subjects))
	if err != nil {
		return since, false, err
	}
	oldest := func(subject string) error {
		msg, err := h.MessageFrom(ctx, 1, subject)
		if err != nil || msg == nil {
			return err
		}
		if end, ok := ParseEnd(msg.Subject, msg.Header, nil); !ok || end.After(revision, index) {
			dropped = true
			if msg.Time.After(since) {
				since = msg.Time
			}
		}
		return nil
	}
	if info.State.FirstSeq > 1 {
		err = oldest(bus.HistorySubjects)
	}
	most := info.Config.MaxMsgsPerSubject
	for subject, count := range info.State.Subjects {
		if err == nil && most > 0 && count >= uint64(most) {
			err = oldest(subject)
		}
	}
	return since, dropped, err
}

// Kept is a run's record as its message in the history has it.
type Kept struct {
	Body []byte // nil when there is none
	Cut  bool   // the message does not have all of it
}

// End is a run's end as its message in the history has it.
type End struct {
	Kept
	Shard    int
	Revision uint64
	Index    int
	Sum      uint32
	Flow     string
	Run      run.ID
}

// ParseEnd reads a message of the history. Those that somebody else put there
// are not ok.
func ParseEnd(subject string, header nats.Header, body []byte) (end End, ok bool) {
	entry, ok := parseEntry(0, subject, header)
	shard, sum, valid := parseRecordID(header.Get(jetstream.MsgIDHeader))
	revision, err1 := strconv.ParseUint(header.Get(bus.HeaderRevision), 10, 64)
	index, err2 := strconv.Atoi(header.Get(bus.HeaderIndex))
	number, err3 := strconv.ParseUint(sum, 16, 32)
	end = End{
		Kept:  Kept{Body: body, Cut: header.Get(bus.HeaderParts) != ""},
		Shard: shard, Revision: revision, Index: index, Sum: uint32(number), Flow: entry.Flow, Run: entry.Run,
	}
	return end, ok && valid && errors.Join(err1, err2, err3) == nil
}

// After reports whether the end comes after an event of the journal.
func (end *End) After(revision uint64, index int) bool {
	return end.Revision > revision || end.Revision == revision && end.Index > index
}
