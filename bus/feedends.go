package bus

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/flowhost/flowhost/run"
)

const (
	// beginSlack is how much later than the begin of a run its first commit is looked
	// for: clocks may be set back.
	beginSlack = 10 * time.Second

	// endsDisorder is how many messages before a place the history is read from: after
	// a crash of the server records may be there later than those that follow them.
	endsDisorder = 8192
)

// gap goes on behind commits that the journal does not hold any more, those before
// the given one: with the ends of runs from the history where these are wanted.
func (t *tracker) gap(ctx context.Context, next *feedCommit) error {
	known, claimed := t.c, t.claim
	t.c = cursor{shard: known.shard, revision: next.after, index: wholeCommit}
	t.claim = true
	if claimed && !t.q.endsOnly() {
		t.page.reset(next.begins())
	}
	if t.q.Run != "" {
		return t.endOfRun(ctx, known)
	}
	if !t.q.wants(run.KindFinished) || !claimed && !t.q.endsOnly() {
		return nil
	}
	if claimed && t.q.endsOnly() {
		since, dropped, err := t.history.droppedAfter(ctx, known, t.q.Flow)
		if err != nil {
			t.c = known
			return err
		}
		if dropped {
			t.page.reset(since)
		}
	}
	seq, err := t.history.seqAfter(ctx, known)
	if err != nil {
		t.c = known
		return err
	}
	known.ends = &endsCursor{until: next.after, seq: seq}
	t.c = known
	return nil
}

// beginRun finds the place before the begin of the run. What the journal holds no
// more of it is a reset; its end is in the history then.
func (t *tracker) beginRun(ctx context.Context) error {
	head := t.head.Load()
	first, err := t.load1(ctx, 1, head)
	if err != nil || first == nil {
		t.c = cursor{shard: t.c.shard, revision: head, index: wholeCommit}
		return err
	}
	began := idTime(t.q.Run)
	low, high := first.revision, head // the place is at low or after it, and before high
	for low+1 < high {
		middle := low + (high-low)/2
		c, err := t.load1(ctx, middle, head)
		if err != nil {
			return err
		}
		if c == nil || c.revision >= high || !c.begins().Before(began.Add(-beginSlack)) {
			high = middle
		} else {
			low = c.revision
		}
	}
	t.claim = true
	if low == first.revision {
		t.c = cursor{shard: t.c.shard, revision: first.after, index: wholeCommit}
		if first.after > 0 && first.begins().Truncate(time.Millisecond).After(began) {
			t.page.reset(first.begins())
			return t.endOfRun(ctx, cursor{index: -1})
		}
		return nil
	}
	t.c = cursor{shard: t.c.shard, revision: low, index: wholeCommit}
	return nil
}

// load1 gives the first commit from a revision on, nil when there is none.
func (f *Feed) load1(ctx context.Context, revision, head uint64) (*feedCommit, error) {
	if revision > head {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, f.journal.timeout)
	defer cancel()
	msg, err := f.journal.stream.GetMsg(ctx, revision, jetstream.WithGetMsgSubject(f.journal.subject))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the journal: %w", err)
	}
	return decodeFeedCommit(msg.Sequence, msg.Data)
}

// begins is when the first event of a commit happened, the zero time without any.
func (c *feedCommit) begins() time.Time { return since([]*feedCommit{c}) }

// idTime is when an id was made.
func idTime(id run.ID) time.Time {
	const digits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
	var ms int64
	for i := range 10 {
		ms = ms<<5 | int64(bytes.IndexByte([]byte(digits), id[i]))
	}
	return time.UnixMilli(ms)
}

// endOfRun gives the end of the run from the history when that is between the known
// place and the cursor: the journal does not have it any more.
func (t *tracker) endOfRun(ctx context.Context, known cursor) error {
	msg, err := t.history.endOf(ctx, t.q.Run)
	if err != nil || msg == nil {
		return err
	}
	end, ok := parseKeptEnd(msg.Subject, msg.Header, msg.Data)
	if !ok || end.shard != t.journal.shard || end.revision > t.c.revision || !end.after(known) {
		return nil
	}
	if t.q.wants(run.KindFinished) {
		body, err := end.event(t.page.limit)
		if err != nil {
			return err
		}
		t.page.add(body)
	}
	t.page.End = true
	return nil
}

// readEnds gives ends of runs from the history.
func (t *tracker) readEnds(ctx context.Context) error {
	h, ends := t.history, *t.c.ends
	subject := historySubjects
	if t.q.Flow != "" {
		subject = prefixHistory + t.q.Flow + ".*"
	}
	first, err := h.messageFrom(ctx, ends.seq, subject)
	if err != nil {
		return err
	}
	if first == nil {
		t.endsOver()
		return nil
	}
	r := reader{js: h.publisher.js, stream: StreamHistory, subject: subject, next: first.Sequence, pull: readPull, most: turnEnds}
	defer r.close(ctx)
	seen, full, over, began := 0, false, false, time.Now()
	err = r.fetch(ctx, func(m jetstream.Msg, at place) error {
		end, ok := parseKeptEnd(m.Subject(), m.Headers(), m.Data())
		if ok && end.shard == t.journal.shard && end.revision <= ends.until && end.after(t.c) {
			body, err := end.event(t.page.limit)
			if err != nil {
				return err
			}
			if full = !t.page.room(body); full {
				return errEnough
			}
			t.page.add(body)
		}
		ends.seq = at.seq + 1
		over = exhausted(m)
		if seen++; over || seen >= turnEnds || time.Since(began) >= turnSpan {
			return errEnough
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("reading the history: %w", err)
	}
	t.c.ends = &ends
	if over && !full {
		t.endsOver()
	}
	return nil
}

// endsOver goes on with the journal.
func (t *tracker) endsOver() {
	t.c = cursor{shard: t.c.shard, revision: t.c.ends.until, index: wholeCommit}
	t.claim = true
}

// keptRecord is a run's record as its message in the history has it.
type keptRecord struct {
	body []byte // nil when there is none
	cut  bool   // the message does not have all of it
}

// keptEnd is a run's end as its message in the history has it.
type keptEnd struct {
	keptRecord
	shard    int
	revision uint64
	index    int
	sum      uint32
	flow     string
	run      run.ID
}

// parseKeptEnd reads a message of the history. Those that somebody else put there
// are not ok.
func parseKeptEnd(subject string, header nats.Header, body []byte) (end keptEnd, ok bool) {
	entry, ok := parseHistoryEntry(0, subject, header)
	shard, sum, valid := parseRecordID(header.Get(jetstream.MsgIDHeader))
	revision, err1 := strconv.ParseUint(header.Get(HeaderRevision), 10, 64)
	index, err2 := strconv.Atoi(header.Get(HeaderIndex))
	number, err3 := strconv.ParseUint(sum, 16, 32)
	end = keptEnd{
		keptRecord: keptRecord{body: body, cut: header.Get(HeaderParts) != ""},
		shard:      shard, revision: revision, index: index, sum: uint32(number), flow: entry.Flow, run: entry.Run,
	}
	return end, ok && valid && errors.Join(err1, err2, err3) == nil
}

// after reports whether the end comes after what the cursor knows.
func (end *keptEnd) after(c cursor) bool {
	return end.revision > c.revision || end.revision == c.revision && end.index > c.index
}

// event gives the end as an event.
func (end *keptEnd) event(limit int) ([]byte, error) {
	var record struct {
		State      run.State    `json:"state"`
		Error      *run.Failure `json:"error"`
		FinishedAt time.Time    `json:"finished_at"`
	}
	if err := json.Unmarshal(end.body, &record); err != nil {
		return nil, fmt.Errorf("record of run %s: %w", end.run, err)
	}
	n := run.Notice{Flow: end.flow, Event: run.Event{
		Run: end.run, At: record.FinishedAt, Data: &run.Finished{State: record.State, Failure: record.Error},
	}}
	body, err := encodeBare(&n, eventID(end.shard, end.revision, end.index, end.sum))
	if err != nil {
		return nil, err
	}
	return withRecord(body, end.keptRecord, limit)
}

// withRecord adds a record to the event of a run's end, or what fits of it.
func withRecord(event []byte, kept keptRecord, limit int) ([]byte, error) {
	const member = `,"record":`
	if kept.body == nil || kept.cut || len(event)+len(member)+len(kept.body) > limit {
		event = extend(event, `,"truncated":true`, nil)
	}
	if kept.body == nil {
		return event, nil
	}
	body := kept.body
	if room := limit - len(event) - len(member); len(body) > room {
		var record run.Record
		err := json.Unmarshal(body, &record)
		if err == nil {
			body, err = fitting(&record, nil, room, folded, slim)
		}
		if err != nil || len(body) > room {
			return event, err
		}
	}
	return extend(event, member, body), nil
}
