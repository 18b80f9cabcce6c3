package feed_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/bus/feed"
	"github.com/flowhost/flowhost/bus/history"
	"github.com/flowhost/flowhost/bus/intake"
	"github.com/flowhost/flowhost/bus/internal/bustest"
	"github.com/flowhost/flowhost/bus/internal/jskit"
	"github.com/flowhost/flowhost/bus/journal"
	"github.com/flowhost/flowhost/bus/natsd"
	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/run/wire"
)

// happened is an event of a feedRig's journal.
type happened struct {
	id       string
	kind     string
	flow     string
	run      run.ID
	revision uint64
}

// feedRig is a journal with the history of its runs and a feed of both.
type feedRig struct {
	t       testing.TB
	server  *natsd.Server
	nc      *nats.Conn
	journal *journal.Journal
	history *bustest.KeptRuns
	feed    *feed.Feed
	loads   atomic.Int64 // of flows

	revision  uint64
	compacted uint64
	log       []happened

	mu   sync.Mutex
	open map[run.ID]string // flow of runs that have not ended; guarded by mu
}

func newFeedRig(t testing.TB) *feedRig {
	s := bustest.StartServer(t, natsd.Config{})
	g := &feedRig{t: t, server: s, nc: bustest.Connect(t, s), journal: bustest.OpenJournal(t, bustest.ConnectJournal(t, s), journal.Config{}), open: map[run.ID]string{}}
	g.history = bustest.OpenHistory(t, g.nc, history.Config{})
	g.newFeed()
	return g
}

// newFeed makes the feed of a new process, which has read nothing.
func (g *feedRig) newFeed() {
	g.feed = feed.New(feed.Config{
		Journal: bustest.OpenJournal(g.t, bustest.ConnectJournal(g.t, g.server), journal.Config{}), History: g.history.Store, FlowsOf: g.flowsOf,
	})
	g.feed.Durable(g.revision)
	bustest.RunPart(g.t, g.feed.Run)
}

func (g *feedRig) flowsOf(_ context.Context, ids []run.ID) (map[run.ID]string, error) {
	g.loads.Add(1)
	g.mu.Lock()
	defer g.mu.Unlock()
	flows := map[run.ID]string{}
	for _, id := range ids {
		if flow := g.open[id]; flow != "" {
			flows[id] = flow
		}
	}
	return flows, nil
}

// commit records events, tells the history of runs that have ended, and shows both.
func (g *feedRig) commit(events ...run.Event) uint64 {
	g.t.Helper()
	var c wire.Commit
	if err := c.Add(events...); err != nil {
		g.t.Fatal(err)
	}
	sealed := c.Seal(g.revision)
	revision, err := g.journal.Append(g.t.Context(), g.revision, sealed)
	if err != nil {
		g.t.Fatal(err)
	}
	sum := wire.CommitSum(sealed)
	g.mu.Lock()
	for i, e := range events {
		switch d := e.Data.(type) {
		case *run.Decided:
			continue
		case *run.Submitted:
			g.open[e.Run] = d.Flow
		}
		flow := g.open[e.Run]
		g.log = append(g.log, happened{fmt.Sprintf("0-%d-%d-%08x", revision, i, sum), e.Data.Kind(), flow, e.Run, revision})
		if d, ok := e.Data.(*run.Finished); ok {
			r := bustest.EndedRun(e.At, flow, d.State)
			r.Run, r.FinishedAt = e.Run, &e.At
			n := bustest.FinishedNotice(r, revision)
			n.Index, n.Sum = i, sum
			if err := g.history.Committed(g.t.Context(), n); err != nil {
				g.t.Fatal(err)
			}
			delete(g.open, e.Run)
		}
	}
	g.mu.Unlock()
	g.revision = revision
	g.feed.Durable(revision)
	return revision
}

// compact removes commits, as an engine does once the history is flushed.
func (g *feedRig) compact(upTo uint64) {
	g.t.Helper()
	if err := errors.Join(g.history.Flush(g.t.Context()), g.journal.Compact(g.t.Context(), upTo)); err != nil {
		g.t.Fatal(err)
	}
	g.compacted = min(upTo, g.revision-1)
}

// one makes a run of four events in as many commits.
func (g *feedRig) one(flow string) run.ID {
	id := run.NewID(time.Now())
	for _, d := range wholeRun(flow) {
		g.commit(run.Event{Run: id, At: time.Now().UTC(), Data: d})
	}
	return id
}

func wholeRun(flow string) []run.EventData {
	ref := run.TaskRef{Task: "price"}
	return []run.EventData{
		&run.Submitted{Flow: flow}, &run.AttemptStarted{TaskRef: ref, Attempt: 1},
		&run.AttemptFinished{TaskRef: ref, Attempt: 1, Outcome: run.OutcomeSucceeded}, &run.Finished{State: run.Succeeded},
	}
}

// read gives what there is, or as much as the query's limit, as one page: a slow machine
// gives it in several.
func (g *feedRig) read(q api.FollowQuery) api.FollowPage {
	g.t.Helper()
	all := g.page(q)
	for last := all; len(last.Events) > 0 && !all.End && (q.Limit == 0 || len(all.Events) < q.Limit); {
		next := q
		next.After = all.Next
		next.Limit = max(q.Limit-len(all.Events), 0)
		last = g.page(next)
		all.Events, all.Next, all.End = append(all.Events, last.Events...), last.Next, last.End
		if last.Reset {
			g.t.Fatalf("%+v: a reset between two pages", next)
		}
	}
	return all
}

func (g *feedRig) page(q api.FollowQuery) api.FollowPage {
	g.t.Helper()
	page, err := g.feed.Read(g.t.Context(), q, false, jskit.MaxPayload)
	if err != nil {
		g.t.Fatalf("%+v: %v", q, err)
	}
	return page
}

func idsOf(t testing.TB, events []json.RawMessage) []string {
	t.Helper()
	var ids []string
	for _, event := range events {
		ids = append(ids, bustest.IdOf(t, event))
	}
	return ids
}

// tracking is a follower of the model.
type tracking struct {
	q       api.FollowQuery
	next    int // in the log: the first event that it has not seen
	started bool
	reset   bool // it knows that something is missing
	got     int
}

func (f *tracking) wants(h happened) bool {
	return (f.q.Flow == "" || f.q.Flow == h.flow) && (f.q.Run == "" || f.q.Run == h.run) &&
		(len(f.q.Kinds) == 0 || slices.Contains(f.q.Kinds, h.kind))
}

func (f *tracking) endsOnly() bool { return len(f.q.Kinds) == 1 && f.q.Kinds[0] == run.KindFinished }

// read takes a page and compares it with what has happened.
func (f *tracking) read(g *feedRig, limit int) {
	g.t.Helper()
	q := f.q
	q.Limit = limit
	page := g.page(q)
	f.q.After = page.Next
	if page.Reset && (f.endsOnly() || !f.started) {
		g.t.Fatalf("%+v: a reset", q)
	}
	f.reset = f.reset || page.Reset
	for _, event := range page.Events {
		id := bustest.IdOf(g.t, event)
		at := slices.IndexFunc(g.log[f.next:], func(h happened) bool { return h.id == id })
		if at < 0 {
			g.t.Fatalf("%+v: event %s came before, or never happened", q, id)
		}
		for _, missed := range g.log[f.next : f.next+at] {
			switch {
			case !f.wants(missed), !f.started && missed.revision <= g.compacted && !f.endsOnly():
			case missed.kind == run.KindFinished && f.started, missed.revision > g.compacted, f.started && !f.reset:
				g.t.Fatalf("%+v: event %+v is missing before %s; reset is %t, the journal begins after %d", q, missed, id, page.Reset, g.compacted)
			}
		}
		f.next += at + 1
		if h := g.log[f.next-1]; !f.wants(h) {
			g.t.Fatalf("%+v: event %+v was not asked for", q, h)
		}
		f.got++
	}
	f.started = f.started || len(page.Events) > 0
}

// Followers of all sorts, at all speeds, get everything in order and once; what the
// journal gave up meanwhile is told as a reset, and even then no end of a run is
// missing.
func TestFeedAgainstModel(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	g := newFeedRig(t)
	flows := []string{"orders", "orders/eu", "billing"}
	type openRun struct {
		id   run.ID
		left []run.EventData
	}
	var open []*openRun
	g.one("orders")
	var followers []*tracking
	for _, q := range []api.FollowQuery{
		{}, {Flow: "orders"}, {Flow: "billing", Kinds: []string{run.KindSubmitted, run.KindFinished}},
		{Kinds: []string{run.KindFinished}}, {Flow: "orders/eu", Kinds: []string{run.KindFinished}}, {Kinds: []string{run.KindAttemptStarted}},
	} {
		for range 2 {
			followers = append(followers, &tracking{q: q})
		}
	}
	for range 400 {
		var events []run.Event
		for range 1 + random.IntN(12) {
			if len(open) == 0 || random.IntN(4) == 0 {
				flow := flows[random.IntN(len(flows))]
				open = append(open, &openRun{run.NewID(time.Now()), wholeRun(flow)})
			}
			i := random.IntN(len(open))
			o := open[i]
			events = append(events, run.Event{Run: o.id, At: time.Now().UTC(), Data: o.left[0]})
			if o.left = o.left[1:]; len(o.left) == 0 {
				open = slices.Delete(open, i, i+1)
			}
		}
		if random.IntN(8) == 0 {
			events = append(events, run.Event{At: time.Now().UTC(), Data: &run.Decided{Position: run.Position{Source: "s", Seq: g.revision + 1}}})
		}
		g.commit(events...)
		if random.IntN(60) == 0 {
			g.newFeed()
		}
		if random.IntN(40) == 0 {
			g.compact(g.revision - uint64(random.IntN(int(g.revision-g.compacted))))
		}
		for i, f := range followers {
			if random.IntN(1+40*(i%2)) == 0 { // every second one is slow
				f.read(g, 1+random.IntN(30))
			}
		}
	}
	for _, f := range followers {
		for last := ""; f.q.After != last; {
			last = f.q.After
			f.read(g, 1000)
		}
		if left := slices.IndexFunc(g.log[f.next:], f.wants); left >= 0 {
			t.Errorf("%+v: event %+v never came", f.q, g.log[f.next+left])
		}
		t.Logf("%s %v: %d events", f.q.Flow, f.q.Kinds, f.got)
	}
}

// A run is followed from its beginning to its end, and the answer says that nothing
// follows. What the journal has given up of it is a reset; its end is in the history.
func TestFeedOfARun(t *testing.T) {
	t.Parallel()
	g := newFeedRig(t)
	for range 20 {
		g.one("orders")
	}
	id := g.one("orders")
	begun := g.read(api.FollowQuery{Run: id, Limit: 2})
	for range 20 {
		g.one("orders")
	}
	var want []string
	for _, h := range g.log {
		if h.run == id {
			want = append(want, h.id)
		}
	}
	page := g.read(api.FollowQuery{Run: id})
	if got := idsOf(t, page.Events); !slices.Equal(got, want) || page.Reset || !page.End {
		t.Errorf("events %v, want %v; reset %t, end %t", got, want, page.Reset, page.End)
	}
	if got := idsOf(t, begun.Events); !slices.Equal(got, want[:2]) || begun.End {
		t.Errorf("the first two: %v", got)
	}
	rest := g.read(api.FollowQuery{Run: id, After: begun.Next})
	if got := idsOf(t, rest.Events); !slices.Equal(got, want[2:]) || rest.Reset || !rest.End {
		t.Errorf("the rest: %v, reset %t, end %t", got, rest.Reset, rest.End)
	}
	if only := g.read(api.FollowQuery{Run: id, Kinds: []string{run.KindFinished}}); !slices.Equal(idsOf(t, only.Events), want[3:]) || !only.End || only.Reset {
		t.Errorf("its end alone: %+v", only)
	}
	var end struct{ Record struct{ Run run.ID } }
	if err := json.Unmarshal(rest.Events[len(rest.Events)-1], &end); err != nil || end.Record.Run != id {
		t.Errorf("the end has no record: %s", rest.Events)
	}
	g.compact(g.revision - 3)
	g.newFeed()
	for _, q := range []api.FollowQuery{{Run: id}, {Run: id, After: begun.Next}} {
		late := g.read(q)
		if got := idsOf(t, late.Events); !slices.Equal(got, want[3:]) || !late.Reset || !late.End {
			t.Errorf("%+v after the journal has given it up: %v, reset %t, end %t", q, got, late.Reset, late.End)
		}
	}
	open := run.NewID(time.Now())
	g.commit(run.Event{Run: open, At: time.Now().UTC(), Data: &run.Submitted{Flow: "orders"}})
	if page := g.read(api.FollowQuery{Run: open}); len(page.Events) != 1 || page.End || page.Reset {
		t.Errorf("an open run: %+v", page)
	}
}

// Runs of which history and journal know are followed over a new process, whose
// window is empty.
func TestFeedWaits(t *testing.T) {
	t.Parallel()
	g := newFeedRig(t)
	g.one("orders")
	now := g.read(api.FollowQuery{After: api.FollowNow})
	if len(now.Events) != 0 || now.Next == "" {
		t.Fatalf("now: %+v", now)
	}
	pages := make(chan api.FollowPage, 30)
	for range 30 {
		go func() {
			page, err := g.feed.Read(t.Context(), api.FollowQuery{Flow: "billing", After: now.Next}, true, jskit.MaxPayload)
			if err != nil {
				t.Error(err)
			}
			pages <- page
		}()
	}
	g.one("orders")
	id := g.one("billing")
	for range 30 {
		page := <-pages
		if len(page.Events) == 0 || !strings.Contains(string(page.Events[0]), string(id)) {
			t.Errorf("page: %+v", page)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	head := g.read(api.FollowQuery{After: api.FollowNow}).Next
	page, err := g.feed.Read(ctx, api.FollowQuery{After: head}, true, jskit.MaxPayload)
	if !errors.Is(err, context.DeadlineExceeded) || page.Next != head || len(page.Events) != 0 {
		t.Errorf("nothing happens: %+v, %v", page, err)
	}
}

// A journal that has lost its end takes back what followers know: that is a reset.
func TestFeedOfALostEnd(t *testing.T) {
	t.Parallel()
	g := newFeedRig(t)
	g.one("orders")
	other := newFeedRig(t)
	other.one("orders")
	other.one("orders")
	for name, after := range map[string]string{
		"other commits under the same revisions": other.read(api.FollowQuery{Limit: 3}).Next,
		"revisions that are not there":           other.read(api.FollowQuery{}).Next,
	} {
		if page := g.read(api.FollowQuery{After: after}); !page.Reset || page.Since == nil || len(page.Events) != 4 {
			t.Errorf("%s: %+v", name, page)
		}
	}
}

// The history drops records, too: those who follow the ends of runs learn that.
func TestFeedOfDroppedRecords(t *testing.T) {
	t.Parallel()
	g := newFeedRig(t)
	g.one("orders")
	ends := api.FollowQuery{Kinds: []string{run.KindFinished}}
	first := g.read(ends)
	for range 10 {
		g.one("orders")
	}
	g.one("billing")
	g.compact(g.revision - 1)
	g.newFeed()
	ends.After = first.Next
	if page := g.read(ends); page.Reset || len(page.Events) != 11 { // the last one is in the journal
		t.Errorf("while the history has all: %d events, reset %t", len(page.Events), page.Reset)
	}
	if err := bus.Provision(t.Context(), g.nc, bus.StreamConfig{HistoryPerFlow: 5}); err != nil {
		t.Fatal(err)
	}
	page := g.read(ends)
	if !page.Reset || page.Since == nil || len(page.Events) != 6 {
		t.Errorf("after it dropped five: %d events, reset %t", len(page.Events), page.Reset)
	}
	ends.Flow = "billing"
	if page := g.read(ends); len(page.Events) != 1 { // nobody knows what the stream held before its first message
		t.Errorf("another flow: %d events", len(page.Events))
	}
}

func TestFeedRefuses(t *testing.T) {
	t.Parallel()
	g := newFeedRig(t)
	id := g.one("orders")
	cursor := g.read(api.FollowQuery{}).Next
	for name, q := range map[string]api.FollowQuery{
		"no cursor":     {After: "x"},
		"cut":           {After: cursor[:len(cursor)-1]},
		"changed":       {After: strings.ToUpper(cursor)},
		"no kind":       {Kinds: []string{"ended"}},
		"not of a run":  {Kinds: []string{run.KindDecided}},
		"many kinds":    {Kinds: slices.Repeat([]string{run.KindStarted}, 100)},
		"limit":         {Limit: -1},
		"no id":         {Run: "x"},
		"no flow":       {Flow: "a.b"},
		"other journal": {After: feed.Cursor(3, 1)},
	} {
		var refused *run.RequestError
		if _, err := g.feed.Read(t.Context(), q, false, jskit.MaxPayload); !errors.As(err, &refused) || refused.Code != run.RequestParams {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, q := range map[string]api.FollowQuery{"unknown run": {Run: run.NewID(time.Now())}, "run of another flow": {Run: id, Flow: "billing"}} {
		if _, err := g.feed.Read(t.Context(), q, false, jskit.MaxPayload); !errors.Is(err, run.ErrUnknown) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Whatever a cursor says, the answer is an error or a page.
func FuzzFollowCursor(f *testing.F) {
	f.Add("x")
	f.Add(feed.Cursor(0, 1))
	f.Add(feed.Cursor(0, 1<<63))
	f.Add(feed.EndsCursor(0, 0, 3, 1<<40))
	f.Add(feed.EndsCursor(0, 1, 1<<63, 1))
	g := newFeedRig(f)
	for range 3 {
		g.one("orders")
	}
	g.compact(5)
	f.Fuzz(func(t *testing.T, after string) {
		feed.CheckCursor(t, after)
		for _, text := range []string{after, feed.Sealed([]byte(after))} {
			_, err := g.feed.Read(t.Context(), api.FollowQuery{After: text}, false, jskit.MaxPayload)
			var refused *run.RequestError
			if err != nil && !errors.As(err, &refused) {
				t.Errorf("%q: %v", text, err)
			}
		}
	})
}

// All followers together get a share of one processor, however many they are and
// however old their cursors.
func TestFeedShare(t *testing.T) {
	t.Parallel()
	g := newFeedRig(t)
	id := run.NewID(time.Now())
	g.commit(run.Event{Run: id, At: time.Now().UTC(), Data: &run.Submitted{Flow: "orders"}})
	for range 300 {
		events := make([]run.Event, 200)
		for i := range events {
			events[i] = run.Event{Run: id, At: time.Now().UTC(), Data: &run.Started{}}
		}
		g.commit(events...)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	var readers sync.WaitGroup
	began := time.Now()
	for range 20 {
		readers.Go(func() {
			for ctx.Err() == nil {
				_, _ = g.feed.Read(ctx, api.FollowQuery{Kinds: []string{run.KindWaitEnded}}, false, jskit.MaxPayload)
			}
		})
	}
	readers.Wait()
	// The last turn has not rested yet.
	busy := feed.FeedBusy(g.feed)
	if share := busy.Seconds() / time.Since(began).Seconds(); share > 0.35 && busy > time.Second {
		t.Errorf("followers kept the feed busy for %.0f %% of the time", 100*share)
	}
}

// follow is the request, as clients send it.
func TestFollowRequest(t *testing.T) {
	t.Parallel()
	g := newFeedRig(t)
	id := g.one("orders")
	bustest.RunIntake(t, g.nc, &bustest.Starter{}, nil, intake.Config{Feed: g.feed})
	text, code := bustest.Request(t, g.nc, "fh.v1.api.follow", `{"flow":"orders","kinds":["submitted","finished"]}`, nil)
	var page api.FollowPage
	if err := json.Unmarshal([]byte(text), &page); err != nil || code != "" || len(page.Events) != 2 || page.Next == "" || page.Reset {
		t.Fatalf("answer %s, %q, %v", text, code, err)
	}
	if diff := cmp.Diff([]string{g.log[0].id, g.log[3].id}, idsOf(t, page.Events)); diff != "" {
		t.Error(diff)
	}
	for body, want := range map[string]string{
		`{"after":"?"}`: run.RequestParams, `{"flows":"orders"}`: run.RequestPayload, `{"run":"01HZXW0000000000000000G0NE"}`: api.CodeUnknownRun,
	} {
		if text, code := bustest.Request(t, g.nc, "fh.v1.api.follow", body, nil); code != want {
			t.Errorf("%s: %q, %s", body, code, text)
		}
	}
	began := make(chan string, 1)
	go func() {
		text, _ := bustest.Request(t, g.nc, "fh.v1.api.follow", `{"after":"`+page.Next+`"}`, nats.Header{bus.HeaderWait: {"20s"}})
		began <- text
	}()
	g.one("orders")
	if text := <-began; !strings.Contains(text, run.KindSubmitted) || strings.Contains(text, string(id)) {
		t.Errorf("the answer to a wait: %s", text)
	}
	if text, code := bustest.Request(t, g.nc, "fh.v1.api.follow", `{"after":"now"}`, nats.Header{bus.HeaderWait: {"10ms"}}); code != "" || !strings.HasPrefix(text, `{"events":[],"next":"`) {
		t.Errorf("nothing happens: %s, %q", text, code)
	}
}

// A record that is larger than a message comes cut short, and events that are many
// come on several pages.
func TestFollowLargeAnswers(t *testing.T) {
	t.Parallel()
	g := newFeedRig(t)
	id := run.NewID(time.Now())
	long := &run.Failure{Outcome: run.OutcomeFailed, Message: strings.Repeat("x", 300<<10)}
	g.commit(run.Event{Run: id, At: time.Now().UTC(), Data: &run.Submitted{Flow: "orders"}})
	for range 9 {
		g.commit(run.Event{Run: id, At: time.Now().UTC(), Data: &run.TaskEnded{TaskRef: run.TaskRef{Task: "a"}, State: run.Failed, Failure: long}})
	}
	var got []string
	for q, pages := (api.FollowQuery{}), 0; len(got) < 10; pages++ {
		page := g.page(q)
		q.After = page.Next
		if n := len(page.Events); n == 0 || n > 4 || pages > 10 {
			t.Fatalf("page %d has %d events", pages, n)
		}
		got = append(got, idsOf(t, page.Events)...)
	}
	if !slices.IsSortedFunc(g.log, func(a, b happened) int { return int(a.revision) - int(b.revision) }) || len(got) != len(g.log) {
		t.Errorf("%d events, want %d", len(got), len(g.log))
	}
}

// A commit that is more than a turn reads does not keep followers from the next one.
func TestFollowBeyondALargeCommit(t *testing.T) {
	t.Parallel()
	g := newFeedRig(t)
	id := run.NewID(time.Now())
	long := &run.Failure{Outcome: run.OutcomeFailed, Message: strings.Repeat("x", 300<<10)}
	large := []run.Event{{Run: id, At: time.Now().UTC(), Data: &run.Submitted{Flow: "orders"}}}
	for range 9 {
		large = append(large, run.Event{Run: id, At: time.Now().UTC(), Data: &run.TaskEnded{TaskRef: run.TaskRef{Task: "a"}, State: run.Failed, Failure: long}})
	}
	g.commit(large...)
	g.commit(large[1:]...)
	g.one("orders")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var got []string
	for q := (api.FollowQuery{}); len(got) < len(g.log); {
		page, err := g.feed.Read(ctx, q, false, jskit.MaxPayload)
		if err != nil {
			t.Fatalf("after %d of %d events: %v", len(got), len(g.log), err)
		}
		q.After = page.Next
		got = append(got, idsOf(t, page.Events)...)
	}
	if len(got) != len(g.log) {
		t.Errorf("%d events, want %d", len(got), len(g.log))
	}
}

func BenchmarkFeed(b *testing.B) {
	g := newFeedRig(b)
	id := run.NewID(time.Now())
	g.commit(run.Event{Run: id, At: time.Now().UTC(), Data: &run.Submitted{Flow: "orders"}})
	events := make([]run.Event, 1000)
	for i := range events {
		events[i] = run.Event{Run: id, At: time.Now().UTC(), Data: &run.AttemptStarted{TaskRef: run.TaskRef{Task: "a"}, Attempt: 1}}
	}
	for range 50 {
		g.commit(events...)
	}
	b.Run("all", func(b *testing.B) {
		n, q := 0, api.FollowQuery{Limit: 1000}
		for b.Loop() {
			page := g.page(q)
			if q.After = page.Next; len(page.Events) == 0 {
				q.After = ""
			}
			n += len(page.Events)
		}
		b.ReportMetric(feed.FeedBusy(g.feed).Seconds()*1e6/float64(max(n, 1)), "busy-µs/event")
	})
}
