package feed

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/events"
	"github.com/flowhost/flowhost/bus/history"
	"github.com/flowhost/flowhost/bus/internal/jskit"
	"github.com/flowhost/flowhost/bus/internal/recordjson"
	"github.com/flowhost/flowhost/run"
)

// beginSlack is how much later than the begin of a run its first commit is looked
// for: clocks may be set back.
const beginSlack = 10 * time.Second

// gap continues behind commits that the journal does not hold any more, those before
// the given one: with the ends of runs from the history where these are wanted.
func (t *tracker) gap(ctx context.Context, next *feedCommit) error {
	known, claimed := t.c, t.claim
	t.c = cursor{shard: known.shard, revision: next.after, index: wholeCommit}
	t.claim = true
	if claimed && !endsOnly(&t.q) {
		t.page.reset(next.begins())
	}
	if t.q.Run != "" {
		return t.endOfRun(ctx, known)
	}
	if !wants(&t.q, run.KindFinished) || !claimed && !endsOnly(&t.q) {
		return nil
	}
	if claimed && endsOnly(&t.q) {
		since, dropped, err := t.history.DroppedAfter(ctx, known.revision, known.index, t.q.Flow)
		if err != nil {
			t.c = known
			return err
		}
		if dropped {
			t.page.reset(since)
		}
	}
	seq, err := t.history.SeqAfter(ctx, known.revision, known.index)
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
	msg, err := f.journal.From(ctx, revision)
	if err != nil {
		return nil, fmt.Errorf("reading the journal: %w", err)
	}
	if msg == nil {
		return nil, nil
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
	msg, err := t.history.EndOf(ctx, t.q.Run)
	if err != nil || msg == nil {
		return err
	}
	end, ok := history.ParseEnd(msg.Subject, msg.Header, msg.Data)
	if !ok || end.Shard != t.journal.Shard() || end.Revision > t.c.revision || !end.After(known.revision, known.index) {
		return nil
	}
	if wants(&t.q, run.KindFinished) {
		body, err := endEvent(&end, t.page.limit)
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
	subject := bus.HistorySubjects
	if t.q.Flow != "" {
		subject = bus.PrefixHistory + t.q.Flow + ".*"
	}
	first, err := h.MessageFrom(ctx, ends.seq, subject)
	if err != nil {
		return err
	}
	if first == nil {
		t.endsOver()
		return nil
	}
	r := h.Reader(subject, first.Sequence, turnEnds)
	defer r.Close(ctx)
	seen, full, over, began := 0, false, false, time.Now()
	err = r.Fetch(ctx, func(m jetstream.Msg, at jskit.Place) error {
		end, ok := history.ParseEnd(m.Subject(), m.Headers(), m.Data())
		if ok && end.Shard == t.journal.Shard() && end.Revision <= ends.until && end.After(t.c.revision, t.c.index) {
			body, err := endEvent(&end, t.page.limit)
			if err != nil {
				return err
			}
			if full = !t.page.room(body); full {
				return jskit.ErrEnough
			}
			t.page.add(body)
		}
		ends.seq = at.Seq + 1
		over = jskit.Exhausted(m)
		if seen++; over || seen >= turnEnds || time.Since(began) >= turnSpan {
			return jskit.ErrEnough
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

// endsOver continues with the journal.
func (t *tracker) endsOver() {
	t.c = cursor{shard: t.c.shard, revision: t.c.ends.until, index: wholeCommit}
	t.claim = true
}

// endEvent gives a run's end as an event.
func endEvent(end *history.End, limit int) ([]byte, error) {
	var record struct {
		State      run.State    `json:"state"`
		Error      *run.Failure `json:"error"`
		FinishedAt time.Time    `json:"finished_at"`
	}
	if err := json.Unmarshal(end.Body, &record); err != nil {
		return nil, fmt.Errorf("record of run %s: %w", end.Run, err)
	}
	n := run.Notice{Flow: end.Flow, Event: run.Event{
		Run: end.Run, At: record.FinishedAt, Data: &run.Finished{State: record.State, Failure: record.Error},
	}}
	body, err := events.Encode(&n, events.ID(end.Shard, end.Revision, end.Index, end.Sum))
	if err != nil {
		return nil, err
	}
	return withRecord(body, end.Kept, limit)
}

// withRecord adds a record to the event of a run's end, or what fits of it.
func withRecord(event []byte, kept history.Kept, limit int) ([]byte, error) {
	const member = `,"record":`
	if kept.Body == nil || kept.Cut || len(event)+len(member)+len(kept.Body) > limit {
		event = events.Extend(event, `,"truncated":true`, nil)
	}
	if kept.Body == nil {
		return event, nil
	}
	body := kept.Body
	if room := limit - len(event) - len(member); len(body) > room {
		var record run.Record
		err := json.Unmarshal(body, &record)
		if err == nil {
			body, err = recordjson.Fit(&record, nil, room, recordjson.Folded, recordjson.Slim)
		}
		if err != nil || len(body) > room {
			return event, err
		}
	}
	return events.Extend(event, member, body), nil
}
