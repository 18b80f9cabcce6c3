package feed

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/flowhost/flowhost/bus/events"
	"github.com/flowhost/flowhost/bus/history"
	"github.com/flowhost/flowhost/bus/internal/jskit"
	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/run/wire"
)

// windowBytes bounds the commits that are kept for those who follow closely, as they
// are stored. In memory they take some times as much.
const windowBytes = 4 << 20

// window is the end of the journal as followers have read it: several that follow
// closely make the host read and decode each commit once.
type window struct {
	commits []*feedCommit
	bytes   int
	used    time.Time
}

// feedCommit is a commit for followers.
type feedCommit struct {
	revision uint64
	after    uint64 // the revision that it follows
	sum      uint32
	size     int // as it is stored
	events   []feedEvent
	flows    bool // are known
}

// feedEvent is an event of a run.
type feedEvent struct {
	run.Event
	index int
	flow  string // empty when it is not known
	body  []byte // once it was asked for
}

func decodeFeedCommit(revision uint64, stored []byte) (*feedCommit, error) {
	commit, err := wire.DecodeCommit(stored)
	if err != nil {
		return nil, fmt.Errorf("revision %d: %w", revision, err)
	}
	c := &feedCommit{revision: revision, after: commit.After, sum: wire.CommitSum(stored), size: len(stored)}
	for i, e := range commit.Events {
		if !slices.Contains(followedKinds, e.Data.Kind()) {
			continue
		}
		e.Payloads(func(p *json.RawMessage) { *p = nil }) // no event shows them
		f := feedEvent{Event: e, index: i}
		if s, ok := e.Data.(*run.Submitted); ok {
			f.flow = s.Flow
		}
		c.events = append(c.events, f)
	}
	return c, nil
}

// commitsFrom gives commits in order, the first of which is the cursor's or, when the
// journal does not hold that or all of it is read, the first after it. There may be more.
func (f *Feed) commitsFrom(ctx context.Context, c cursor, head uint64) ([]*feedCommit, error) {
	w, revision := &f.tail, c.revision
	w.used = time.Now()
	if n := len(w.commits); n > 0 && (w.commits[0].revision <= revision || w.commits[0].after == revision && (c.index == wholeCommit || revision == 0)) {
		last := w.commits[n-1].revision
		if last < head {
			more, err := f.load(ctx, last+1, head)
			if err != nil {
				return nil, err
			}
			w.add(more)
		}
		at, _ := slices.BinarySearchFunc(w.commits, revision, func(c *feedCommit, r uint64) int {
			if c.revision < r {
				return -1
			}
			return 1
		})
		return w.commits[at:], nil
	}
	commits, err := f.load(ctx, max(revision, 1), head)
	if n := len(commits); err == nil && n > 0 && commits[n-1].revision >= head {
		*w = window{used: w.used}
		w.add(commits)
	}
	return commits, err
}

func (w *window) add(commits []*feedCommit) {
	for _, c := range commits {
		w.bytes += c.size
	}
	w.commits = append(w.commits, commits...)
	drop := 0
	for ; w.bytes > windowBytes && drop < len(w.commits)-1; drop++ {
		w.bytes -= w.commits[drop].size
	}
	w.commits = slices.Clone(w.commits[drop:]) // who reads has the old ones
}

// load reads commits from a revision on, up to head and as many as a turn may; but at
// least one after that revision, whose own commit a follower may have read to its end.
func (f *Feed) load(ctx context.Context, revision, head uint64) (commits []*feedCommit, err error) {
	r := f.journal.Reader(revision, turnCommits)
	defer r.Close(ctx)
	bytes, began := 0, time.Now()
	err = r.Fetch(ctx, func(m jetstream.Msg, at jskit.Place) error {
		if at.Seq > head {
			return jskit.ErrEnough
		}
		c, err := decodeFeedCommit(at.Seq, m.Data())
		if err != nil {
			return err
		}
		commits = append(commits, c)
		bytes += c.size
		enough := bytes >= turnBytes || len(commits) >= turnCommits || time.Since(began) >= turnSpan
		if at.Seq == head || enough && at.Seq > revision {
			return jskit.ErrEnough
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading the journal: %w", err)
	}
	return commits, nil
}

// readJournal gives what the journal has after the cursor.
func (t *tracker) readJournal(ctx context.Context) (more bool, err error) {
	head := t.head.Load()
	if t.c.revision == head && t.c.index == wholeCommit {
		return false, nil
	}
	if t.c.revision > head {
		return true, t.lost(ctx, head)
	}
	commits, err := t.commitsFrom(ctx, t.c, head)
	if err != nil {
		return false, err
	}
	for _, c := range commits {
		switch {
		case c.revision > head:
			return false, nil
		case c.revision == t.c.revision:
			if t.c.sum != 0 && t.c.sum != c.sum {
				return true, t.lost(ctx, head)
			}
		case c.after != t.c.revision || t.c.index != wholeCommit && t.c.revision > 0:
			return true, t.gap(ctx, c)
		default:
			t.c = cursor{shard: t.c.shard, revision: c.revision, index: -1, sum: c.sum}
		}
		if full, err := t.show(ctx, c); full || err != nil {
			return true, err
		}
	}
	return t.c.revision < head && len(commits) > 0, nil
}

// show gives the events of the cursor's commit that are behind the cursor.
func (t *tracker) show(ctx context.Context, c *feedCommit) (full bool, err error) {
	t.c.sum = c.sum
	if t.q.Run == "" {
		if err := t.resolve(ctx, c); err != nil {
			return false, err
		}
	}
	for i := range c.events {
		e := &c.events[i]
		if e.index <= t.c.index || !t.wantsEvent(e) {
			continue
		}
		body, err := t.bodyOf(ctx, c, e)
		if err != nil {
			return false, err
		}
		if !t.page.room(body) {
			return true, nil
		}
		t.page.add(body)
		t.c.index = e.index
		if t.q.Run != "" && e.Data.Kind() == run.KindFinished {
			t.page.End = true
			return true, nil
		}
	}
	t.c.index = wholeCommit
	return len(t.page.Events) >= t.page.most, nil
}

func (t *tracker) wantsEvent(e *feedEvent) bool {
	if t.q.Run != "" {
		return e.Run == t.q.Run && wants(&t.q, e.Data.Kind())
	}
	return e.flow != "" && (t.q.Flow == "" || t.q.Flow == e.flow) && wants(&t.q, e.Data.Kind())
}

// resolve finds out which flows the events of a commit are of. Those of runs that the
// history has dropped already stay without.
func (f *Feed) resolve(ctx context.Context, c *feedCommit) error {
	if c.flows {
		return nil
	}
	asked := map[run.ID]bool{}
	var ids []run.ID
	for _, e := range c.events {
		if e.flow == "" && !asked[e.Run] {
			asked[e.Run] = true
			ids = append(ids, e.Run)
		}
	}
	flows, err := f.flowsOfAll(ctx, ids)
	if err != nil {
		return err
	}
	for i := range c.events {
		if e := &c.events[i]; e.flow == "" {
			e.flow = flows[e.Run]
		}
	}
	c.flows = true
	return nil
}

// bodyOf gives an event as it is published.
func (t *tracker) bodyOf(ctx context.Context, c *feedCommit, e *feedEvent) ([]byte, error) {
	if e.body != nil && len(e.body) <= t.page.limit {
		return e.body, nil
	}
	flow := e.flow
	if t.q.Run != "" {
		flow = t.flow
	}
	n := run.Notice{Revision: c.revision, Sum: c.sum, Index: e.index, Event: e.Event, Flow: flow}
	body, err := events.Encode(&n, events.ID(t.journal.Shard(), c.revision, e.index, c.sum))
	if err == nil && e.Data.Kind() == run.KindFinished {
		var kept history.Kept
		if kept, err = t.history.Kept(ctx, e.Run); err != nil {
			return nil, err
		}
		body, err = withRecord(body, kept, t.page.limit)
	}
	if err != nil {
		return nil, err
	}
	if len(body) > t.page.limit {
		return nil, fmt.Errorf("event %d of revision %d has %d bytes and a message may have %d", e.index, c.revision, len(body), t.page.limit)
	}
	e.body = body
	return body, nil
}

// lost begins again with what the journal holds: it does not hold what the cursor
// knows, and may have given its revision to another commit.
func (t *tracker) lost(ctx context.Context, head uint64) error {
	commits, err := t.load(ctx, 1, head)
	if err != nil {
		return err
	}
	t.c = cursor{shard: t.c.shard, revision: head, index: wholeCommit}
	if len(commits) > 0 {
		t.c.revision = commits[0].after
	}
	t.page.reset(since(commits))
	return nil
}

// since is when the first of some commits was made.
func since(commits []*feedCommit) time.Time {
	for _, c := range commits {
		if len(c.events) > 0 {
			return c.events[0].At
		}
	}
	return time.Time{}
}
