package feed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/bus/history"
	"github.com/flowhost/flowhost/bus/internal/jskit"
	"github.com/flowhost/flowhost/bus/journal"
	"github.com/flowhost/flowhost/run"
)

// Bounds of what followers may ask of a host. All of them together get one turn at a
// time, and after it the others get restShare times as long: a fifth of one processor.
const (
	restShare = 4
	restMost  = 2 * time.Second

	turnTime    = 10 * time.Second      // after which it fails: the server does not answer
	turnSpan    = 25 * time.Millisecond // after which it reads no further commit or record
	turnCommits = 256                   // that one turn reads of the journal
	turnBytes   = 2 << 20               // of them; the first two and the last one may be larger
	turnEnds    = 64                    // records that one turn reads of the history

	pageEvents    = 256 // of an answer when the request does not set it
	maxPageEvents = 1000
	pageBytes     = 1 << 20 // of an answer, unless a single event is larger

	wakeEvery  = 10 * time.Millisecond // how often a follower that waits looks at most
	windowIdle = time.Minute           // after which the commits read last are forgotten
)

// Config configures a feed. Journal and History are required.
type Config struct {
	// Journal is read on a separate connection: the commits of the engine would
	// wait for what followers read.
	Journal *journal.Journal
	History *history.Store

	// FlowsOf gives the flows of runs that are open or ended lately. Default: the
	// history alone is asked.
	FlowsOf func(context.Context, []run.ID) (map[run.ID]string, error)

	Log *slog.Logger // default: none
}

// Feed serves the events of a shard to whoever asks for them by a cursor: from the
// journal what that holds, and the ends of runs from the history before that. What
// cannot be given any more is reported as a reset. Its methods are safe for concurrent use.
type Feed struct {
	journal *journal.Journal
	history *history.Store
	flowsOf func(context.Context, []run.ID) (map[run.ID]string, error)
	log     *slog.Logger

	head atomic.Uint64 // the last revision that may be shown

	turns *semaphore.Weighted // held by who reads
	free  time.Time           // of the next turn; of who holds turns
	busy  time.Duration       // of all turns; of who holds turns
	tail  window              // of who holds turns

	mu     sync.Mutex
	change chan struct{} // closed when head rises; guarded by mu
}

// New makes a feed that shows nothing until Durable is called.
func New(cfg Config) *Feed {
	return &Feed{
		journal: cfg.Journal, history: cfg.History, flowsOf: cfg.FlowsOf, log: jskit.Logger(cfg.Log),
		turns: semaphore.NewWeighted(1), change: make(chan struct{}),
	}
}

// Durable notes that everything up to the revision may be shown. It never waits.
func (f *Feed) Durable(revision uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.head.Store(revision)
	close(f.change)
	f.change = make(chan struct{})
}

func (f *Feed) changes() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.change
}

// Run forgets what nobody has followed for a while, until ctx ends, whose cause it
// returns.
func (f *Feed) Run(ctx context.Context) error {
	tick := time.NewTicker(windowIdle / 2)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if err := f.turns.Acquire(ctx, 1); err != nil {
			return context.Cause(ctx)
		}
		if time.Since(f.tail.used) >= windowIdle {
			f.tail = window{}
		}
		f.turns.Release(1)
	}
}

// Read gives the events after the query's cursor. With wait it waits for one when
// there is none, until ctx ends. The page is valid, and so is its cursor, also with
// the error of a context. A *run.RequestError refuses the query, run.ErrUnknown its
// run.
func (f *Feed) Read(ctx context.Context, q api.FollowQuery, wait bool, limit int) (api.FollowPage, error) {
	t := &tracker{Feed: f, q: q, page: newFeedPage(q, limit)}
	err := t.begin(ctx)
	for err == nil {
		change := f.changes()
		more := false
		err = f.turn(ctx, func(ctx context.Context) (err error) { more, err = t.step(ctx); return err })
		if err != nil || t.page.worth() || !more && (!wait || t.page.Reset) {
			break
		}
		if !more {
			err = pause(ctx, change)
		}
	}
	if err == nil || ctx.Err() != nil {
		t.page.Next = t.c.encode()
		if !t.begun {
			t.page.Next = q.After
		}
	}
	return t.page.FollowPage, err
}

// pause waits for a change, and then a little for more of them.
func pause(ctx context.Context, change <-chan struct{}) error {
	select {
	case <-change:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	timer := time.NewTimer(wakeEvery)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// turn does a bounded piece of work for a follower, one at a time, in the order in
// which they come, and no more of them than their share.
func (f *Feed) turn(ctx context.Context, work func(context.Context) error) error {
	if err := f.turns.Acquire(ctx, 1); err != nil {
		return context.Cause(ctx)
	}
	defer f.turns.Release(1)
	if rest := time.Until(f.free); rest > 0 {
		timer := time.NewTimer(rest)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	began := time.Now()
	within, cancel := context.WithTimeout(ctx, turnTime)
	defer cancel()
	err := work(within)
	ended := time.Now()
	f.busy += ended.Sub(began)
	f.free = ended.Add(min(restShare*ended.Sub(began), restMost))
	return err
}

// feedPage collects an answer.
type feedPage struct {
	api.FollowPage
	bytes, most int
	limit       int // of a single event, in bytes
}

func newFeedPage(q api.FollowQuery, limit int) feedPage {
	most := q.Limit
	if most <= 0 {
		most = pageEvents
	}
	return feedPage{FollowPage: api.FollowPage{Events: []json.RawMessage{}}, most: min(most, maxPageEvents), limit: limit - 1024}
}

// room reports whether an event fits.
func (p *feedPage) room(event []byte) bool {
	return len(p.Events) == 0 || len(p.Events) < p.most && p.bytes+len(event) < min(pageBytes, p.limit)
}

func (p *feedPage) add(event []byte) {
	p.Events = append(p.Events, event)
	p.bytes += len(event) + 1
}

// worth reports whether the page is worth an answer.
func (p *feedPage) worth() bool { return len(p.Events) > 0 || p.End }

func (p *feedPage) reset(since time.Time) {
	p.Reset = true
	if !since.IsZero() {
		p.Since = &since
	}
}

// followedKinds are the kinds of events that are published: those of runs.
var followedKinds = []string{
	run.KindSubmitted, run.KindStarted, run.KindAttemptStarted, run.KindAttemptFinished, run.KindChildStarted,
	run.KindTaskEnded, run.KindTaskReused, run.KindTaskExpanded, run.KindTaskCancelRequested,
	run.KindWaitStarted, run.KindWaitEnded, run.KindCancelRequested, run.KindFinished,
}

// CheckQuery refuses a query that cannot be answered, with a *run.RequestError.
func CheckQuery(q *api.FollowQuery) error {
	if q.Run != "" {
		if _, err := run.ParseID(string(q.Run)); err != nil {
			return run.Requestf(run.RequestParams, "%s", err)
		}
	}
	if q.Flow != "" {
		if err := bus.CheckToken(q.Flow); err != nil {
			return run.Requestf(run.RequestParams, "flow: %s", err)
		}
	}
	for _, kind := range q.Kinds {
		if !slices.Contains(followedKinds, kind) {
			return run.Requestf(run.RequestParams, "kinds: %.40q is no kind of an event; those are %q", kind, followedKinds)
		}
	}
	if len(q.Kinds) > len(followedKinds) {
		return run.Requestf(run.RequestParams, "kinds: there are %d, and %d are given", len(followedKinds), len(q.Kinds))
	}
	if q.Limit < 0 {
		return run.Requestf(run.RequestParams, "limit: %d is less than 0", q.Limit)
	}
	if q.After == "" || q.After == api.FollowNow {
		return nil
	}
	if _, err := parseCursor(q.After); err != nil {
		return run.Requestf(run.RequestParams, "after: %.40q: %s", q.After, err)
	}
	return nil
}

// wants reports whether events of a kind are asked for.
func wants(q *api.FollowQuery, kind string) bool {
	return len(q.Kinds) == 0 || slices.Contains(q.Kinds, kind)
}

// endsOnly reports whether nothing but the ends of runs is asked for.
func endsOnly(q *api.FollowQuery) bool {
	return len(q.Kinds) > 0 && !slices.ContainsFunc(q.Kinds, func(kind string) bool { return kind != run.KindFinished })
}

// errShard refuses the cursor of another shard.
var errShard = errors.New("it is that of another journal")

// tracker answers one request.
type tracker struct {
	*Feed
	q     api.FollowQuery
	c     cursor
	flow  string // of the run that is asked for
	begun bool   // c is set
	claim bool   // the follower has a cursor: a gap behind it is a reset
	page  feedPage
}

// begin finds the place from which the events are wanted.
func (t *tracker) begin(ctx context.Context) (err error) {
	if err := CheckQuery(&t.q); err != nil {
		return err
	}
	if t.q.Run != "" {
		if t.flow, err = t.flowOf(ctx, t.q.Run); err != nil {
			return err
		}
		if t.q.Flow != "" && t.q.Flow != t.flow {
			return fmt.Errorf("run %s is not one of flow %s: %w", t.q.Run, t.q.Flow, run.ErrUnknown)
		}
	}
	switch t.q.After {
	case api.FollowNow:
		t.c, t.claim = cursor{shard: t.journal.Shard(), revision: t.head.Load(), index: wholeCommit}, true
	case "":
		t.c = cursor{shard: t.journal.Shard(), index: -1}
		if t.q.Run != "" {
			err = t.turn(ctx, t.beginRun)
		}
	default:
		t.c, err = parseCursor(t.q.After)
		if err == nil && t.c.shard != t.journal.Shard() {
			err = run.Requestf(run.RequestParams, "after: %s", errShard)
		}
		t.claim = true
	}
	t.begun = err == nil
	return err
}

// flowOf gives the flow of a run, or run.ErrUnknown.
func (f *Feed) flowOf(ctx context.Context, id run.ID) (string, error) {
	flows, err := f.flowsOfAll(ctx, []run.ID{id})
	if err == nil && flows[id] == "" {
		err = run.ErrUnknown
	}
	return flows[id], err
}

// flowsOfAll gives the flows of runs, as far as they are open or in the history.
func (f *Feed) flowsOfAll(ctx context.Context, ids []run.ID) (map[run.ID]string, error) {
	flows := map[run.ID]string{}
	if f.flowsOf != nil {
		var err error
		if flows, err = f.flowsOf(ctx, ids); err != nil {
			return nil, err
		}
	}
	for _, id := range ids {
		if flows[id] != "" {
			continue
		}
		flow, err := f.history.FlowOf(ctx, id)
		if err != nil {
			return nil, err
		}
		flows[id] = flow
	}
	return flows, nil
}

// step reads on, and reports whether there is more to be read at once.
func (t *tracker) step(ctx context.Context) (more bool, err error) {
	if t.c.ends != nil {
		return true, t.readEnds(ctx)
	}
	return t.readJournal(ctx)
}
