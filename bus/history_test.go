package bus_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/run"
)

// keptRuns is a history at work.
type keptRuns struct {
	*bus.History
	t    testing.TB
	stop func()
}

// openHistory starts a history that ends with the test, or by stop.
func openHistory(t testing.TB, nc *nats.Conn, cfg bus.HistoryConfig) *keptRuns {
	t.Helper()
	if cfg.Index == "" {
		cfg.Index = filepath.Join(t.TempDir(), "history.index")
	}
	h, err := bus.NewHistory(t.Context(), nc, cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := h.Run(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("Run = %v", err)
		}
	})
	stop := sync.OnceFunc(func() { cancel(); running.Wait() })
	t.Cleanup(stop)
	return &keptRuns{h, t, stop}
}

// take gives records to the history and waits until they are in the stream.
func (h *keptRuns) take(records ...*run.Record) {
	h.t.Helper()
	for i, r := range records {
		if err := h.Committed(h.t.Context(), finishedNotice(r, uint64(i+1))); err != nil {
			h.t.Fatal(err)
		}
	}
	if err := h.Flush(h.t.Context()); err != nil {
		h.t.Fatal(err)
	}
}

func (h *keptRuns) list(q run.Query) run.Page {
	h.t.Helper()
	page, err := h.List(h.t.Context(), q)
	if err != nil {
		h.t.Fatal(err)
	}
	return page
}

// all lists everything that matches, page by page.
func (h *keptRuns) all(q run.Query) []run.Summary {
	h.t.Helper()
	var all []run.Summary
	for {
		page := h.list(q)
		all = append(all, page.Runs...)
		if page.Next == "" {
			return all
		}
		q.Before = page.Next
	}
}

// gets checks that each record can be had, or that none can.
func (h *keptRuns) gets(records ...*run.Record) {
	h.t.Helper()
	for _, want := range records {
		got, err := h.Get(h.t.Context(), want.Run)
		if err != nil {
			h.t.Errorf("Get of %s: %v", want.Run, err)
			continue
		}
		if !reflect.DeepEqual(want, got) { // a difference takes long to be looked for in many tasks
			h.t.Errorf("record of %s (-want +got):\n%.5000s", want.Run, gocmp.Diff(want, got))
		}
	}
}

func (h *keptRuns) misses(records ...*run.Record) {
	h.t.Helper()
	for _, r := range records {
		if _, err := h.Get(h.t.Context(), r.Run); !errors.Is(err, run.ErrUnknown) {
			h.t.Errorf("Get of %s = %v, want run.ErrUnknown", r.Run, err)
		}
	}
}

// finishedNotice is the notice of a run's end.
func finishedNotice(r *run.Record, revision uint64) run.Notice {
	return run.Notice{Revision: revision, Flow: r.Flow, Record: r, Event: run.Event{
		Run: r.Run, At: *r.FinishedAt, Data: &run.Finished{State: r.State, Output: r.Output, Failure: r.Error},
	}}
}

// endedRun is the record of a run that was accepted at the given time and has just
// finished.
func endedRun(at time.Time, flow string, state run.State) *run.Record {
	now := time.Now().UTC()
	ms := 1.5
	r := &run.Record{
		Run: run.NewID(at), Flow: flow, State: state, Params: map[string]json.RawMessage{"n": json.RawMessage(`1`)},
		Trigger: run.Trigger{Kind: run.TriggerSchedule, Name: "nightly", Time: at.UTC()},
		Output:  json.RawMessage(`{"total":"<1>"}`), CreatedAt: at.UTC(), StartedAt: &now, FinishedAt: &now, DurationMS: &ms,
		Tasks: []run.TaskRecord{{Task: "price", State: state, Attempts: 1, Input: json.RawMessage(`{"a":1}`), Output: json.RawMessage(`2`)}},
	}
	if state != run.Succeeded {
		r.Error = &run.Failure{Outcome: run.OutcomeFailed, Code: "no_stock", Message: "none left"}
	}
	return r
}

// endedRuns are n runs of three flows in all final states, in the order in which
// they were accepted, one each second up to now.
func endedRuns(n int) []*run.Record {
	flows := []string{"orders", "orders/eu", "billing"}
	states := []run.State{run.Succeeded, run.Succeeded, run.Failed, run.Succeeded, run.Canceled}
	start := time.Now().Add(-time.Duration(n) * time.Second)
	all := make([]*run.Record, n)
	for i := range all {
		all[i] = endedRun(start.Add(time.Duration(i)*time.Second), flows[i%len(flows)], states[i%len(states)])
	}
	return all
}

// children makes some of the runs those of sub-flows.
func children(records []*run.Record) {
	for i := 3; i < len(records); i += 4 {
		records[i].Parent = &run.Parent{Run: records[i-1].Run, TaskRef: run.TaskRef{Task: "call"}, Depth: 1}
		records[i].Trigger = run.Trigger{Kind: run.TriggerTask, Time: records[i].Trigger.Time}
	}
}

// newest gives the summaries of the records that match, as a list shows them.
func newest(records []*run.Record, q run.Query) []run.Summary {
	var all []run.Summary
	for _, r := range records {
		if s := r.Summary(); q.Matches(&s) {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b run.Summary) int { return cmp.Compare(b.Run, a.Run) })
	return all
}

// indexSettled waits until everything is in the index.
func indexSettled(t testing.TB, h *keptRuns) {
	t.Helper()
	eventually(t, "the index has everything", func() bool { return h.Indexed() })
}

func sameRuns(t testing.TB, what string, want, got []run.Summary) {
	t.Helper()
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestHistoryLists(t *testing.T) {
	t.Parallel()
	h := openHistory(t, connect(t, startServer(t, bus.ServerConfig{})), bus.HistoryConfig{})
	records := endedRuns(60)
	middle := records[30]
	children(records)
	h.take(records...)
	check := func(when string) {
		for name, q := range map[string]run.Query{
			"everything":         {},
			"flow":               {Flow: "orders"},
			"another flow":       {Flow: "order"},
			"state":              {States: []run.State{run.Failed}},
			"states":             {States: []run.State{run.Canceled, run.Failed, run.Canceled}},
			"no state of an end": {States: []run.State{run.Running}},
			"flow and state":     {Flow: "orders/eu", States: []run.State{run.Succeeded}},
			"since":              {Since: middle.CreatedAt},
			"until":              {Until: middle.CreatedAt},
			"since and until":    {Since: records[10].CreatedAt, Until: middle.CreatedAt, Flow: "billing"},
			"before":             {Before: middle.Run},
			"before and until":   {Before: middle.Run, Until: records[40].CreatedAt},
			"until and before":   {Before: records[40].Run, Until: middle.CreatedAt},
			"before everything":  {Before: records[0].Run},
			"long ago":           {Until: records[0].CreatedAt},
			"all":                {Children: true},
			"all since":          {Children: true, Since: middle.CreatedAt, States: []run.State{run.Failed, run.Canceled}},
			"all of a flow":      {Children: true, Flow: "orders/eu"},
		} {
			for _, limit := range []int{0, 1, 7} {
				q.Limit = limit
				sameRuns(t, fmt.Sprintf("%s, %s by %d", name, when, limit), newest(records, q), h.all(q))
			}
		}
		h.gets(records...)
		h.misses(endedRun(time.Now(), "orders", run.Failed))
	}
	check("at once")
	indexSettled(t, h)
	check("from the index")
	if page := h.list(run.Query{Limit: 60, Children: true}); len(page.Runs) != 60 || page.Next != "" {
		t.Errorf("the last page has %d runs and goes on at %q", len(page.Runs), page.Next)
	}
}

// A record is there before it is in the stream, and once only.
func TestHistoryShowsWhatIsOnItsWay(t *testing.T) {
	t.Parallel()
	x := newExternal(t)
	x.start()
	var log logLines
	nc := x.connect(&log, x.address())
	if err := bus.Provision(t.Context(), nc, bus.StreamConfig{}); err != nil {
		t.Fatal(err)
	}
	h := openHistory(t, nc, bus.HistoryConfig{Timeout: 200 * time.Millisecond, Log: log.logger()})
	records := endedRuns(20)
	h.take(records[:10]...)
	indexSettled(t, h)
	x.stop()
	for _, r := range records[10:] {
		for range 2 {
			if err := h.Committed(t.Context(), finishedNotice(r, 7)); err != nil {
				t.Fatal(err)
			}
		}
	}
	eventually(t, "the wait is logged", func() bool { return log.count("waiting to publish records") > 0 })
	sameRuns(t, "without a server", newest(records, run.Query{}), h.all(run.Query{Limit: 3}))
	h.gets(records[10:]...)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := h.Flush(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Flush without a server = %v", err)
	}
	x.start()
	if err := h.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	indexSettled(t, h)
	sameRuns(t, "with it again", newest(records, run.Query{}), h.all(run.Query{Limit: 3}))
	h.gets(records...)
	if got := len(messages(t, nc, bus.StreamHistory)); got != len(records) {
		t.Errorf("the stream holds %d records, want %d", got, len(records))
	}
}

// A page follows the one before, whatever finishes meanwhile.
func TestHistoryCursorAmongNewRuns(t *testing.T) {
	t.Parallel()
	h := openHistory(t, connect(t, startServer(t, bus.ServerConfig{})), bus.HistoryConfig{})
	records := endedRuns(300)
	h.take(records[:100]...)
	var giver sync.WaitGroup
	giver.Go(func() { h.take(records[100:]...) })
	q := run.Query{Limit: 9, Before: records[100].Run}
	for range 20 {
		sameRuns(t, "the first hundred", newest(records[:100], run.Query{}), h.all(q))
	}
	giver.Wait()
	sameRuns(t, "all", newest(records, run.Query{}), h.all(run.Query{Limit: 9}))
}

func TestHistoryMessages(t *testing.T) {
	t.Parallel()
	s := startServer(t, bus.ServerConfig{})
	nc, j := connect(t, s), openJournal(t, connectJournal(t, s), bus.JournalConfig{})
	h := openHistory(t, nc, bus.HistoryConfig{Shard: 3})
	r := endedRun(time.Now(), "orders/eu", run.Failed)
	r.Error.Code = "a" + strings.Repeat("é", 100)
	n := finishedNotice(r, 41)
	n.Index, n.Sum = 7, 0x2a
	for _, n := range []run.Notice{notice(40, 0, &run.Started{}), n} {
		if err := h.Committed(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := messages(t, nc, bus.StreamHistory)
	if len(got) != 1 {
		t.Fatalf("%d messages, want 1", len(got))
	}
	m := got[0]
	body, err := run.EncodeJSON(r)
	if err != nil {
		t.Fatal(err)
	}
	if m.Subject != "fh.v1.history.orders/eu.failed" || string(m.Data) != string(body) {
		t.Errorf("subject %s, body\n%s\nwant\n%s", m.Subject, m.Data, body)
	}
	var summary run.Summary
	if err := json.Unmarshal([]byte(m.Header.Get(bus.HeaderSummary)), &summary); err != nil {
		t.Fatal(err)
	}
	want := r.Summary()
	want.Error = "a" + strings.Repeat("é", 63)
	if diff := gocmp.Diff(want, summary); diff != "" {
		t.Errorf("summary (-want +got):\n%s", diff)
	}
	header := fmt.Sprint(m.Header.Get("Nats-Msg-Id"), " ", m.Header.Get(bus.HeaderRun), " ", m.Header.Get(bus.HeaderRevision), " ", m.Header.Get(bus.HeaderIndex))
	if want := fmt.Sprintf("3-%s-0000002a %s 41 7", r.Run, r.Run); header != want {
		t.Errorf("headers %q, want %q", header, want)
	}
	if got, err := h.Last(t.Context(), j); got != (bus.Standing{Told: 41}) || err != nil {
		t.Errorf("Last = %+v, %v", got, err)
	}
	other := openHistory(t, nc, bus.HistoryConfig{})
	if got, err := other.Last(t.Context(), j); got != (bus.Standing{}) || err != nil {
		t.Errorf("Last of another shard = %+v, %v", got, err)
	}
}

func TestHistoryRefuses(t *testing.T) {
	t.Parallel()
	h := openHistory(t, connect(t, startServer(t, bus.ServerConfig{})), bus.HistoryConfig{})
	for name, r := range map[string]*run.Record{
		"a flow that is no token": endedRun(time.Now(), "a.b", run.Failed),
		"an open run":             endedRun(time.Now(), "orders", run.Running),
	} {
		if err := h.Committed(t.Context(), finishedNotice(r, 1)); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
	old := endedRun(time.Now().Add(-40*24*time.Hour), "orders", run.Failed)
	*old.FinishedAt = old.CreatedAt
	h.take(old)
	h.misses(old)
	if got := h.all(run.Query{}); len(got) != 0 {
		t.Errorf("the list has %v", got)
	}
}

func TestHistoryAfterRestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(t.TempDir(), "history.index")
	records := endedRuns(90)
	for i := range 3 {
		s, err := bus.StartServer(t.Context(), bus.ServerConfig{Dir: dir, NoListen: true})
		if err != nil {
			t.Fatal(err)
		}
		h := openHistory(t, connect(t, s), bus.HistoryConfig{Index: path})
		sameRuns(t, "before", newest(records[:30*i], run.Query{}), h.all(run.Query{}))
		j := openJournal(t, connectJournal(t, s), bus.JournalConfig{})
		if got, err := h.Last(t.Context(), j); got != (bus.Standing{Told: min(uint64(i), 1) * 30}) || err != nil {
			t.Errorf("Last = %+v, %v", got, err)
		}
		h.take(records[30*i : 30*(i+1)]...)
		sameRuns(t, "after", newest(records[:30*(i+1)], run.Query{}), h.all(run.Query{}))
		h.gets(records[:30*(i+1)]...)
		h.stop()
		if _, err := h.List(t.Context(), run.Query{}); err == nil {
			t.Error("List of a history that has ended succeeded")
		}
		stopServer(t, s)
	}
}

// Whatever became of the file, the list is that of the stream.
func TestHistoryIndexIsMadeAnew(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(t *testing.T, path string){
		"missing": func(t *testing.T, path string) { check(t, os.Remove(path)) },
		"empty":   func(t *testing.T, path string) { check(t, os.Truncate(path, 0)) },
		"cut":     func(t *testing.T, path string) { check(t, os.Truncate(path, 20<<10)) },
		"garbage": func(t *testing.T, path string) { check(t, os.WriteFile(path, []byte("not an index"), 0o600)) },
		"pages of noise": func(t *testing.T, path string) {
			overwrite(t, path, 2*os.Getpagesize(), strings.Repeat("noise", 100<<10))
		},
		"pages of nothing": func(t *testing.T, path string) {
			overwrite(t, path, 4*os.Getpagesize(), strings.Repeat("\x00", 100<<10))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			nc := connect(t, startServer(t, bus.ServerConfig{}))
			path := filepath.Join(t.TempDir(), "sub", "history.index")
			h := openHistory(t, nc, bus.HistoryConfig{Index: path})
			records := endedRuns(1500)
			h.take(records[:1400]...)
			indexSettled(t, h)
			h.stop()
			spoil(t, path)
			h = openHistory(t, nc, bus.HistoryConfig{Index: path})
			h.take(records[1400:]...)
			sameRuns(t, "runs", newest(records, run.Query{}), h.all(run.Query{Limit: 1000}))
			indexSettled(t, h)
			sameRuns(t, "runs", newest(records, run.Query{}), h.all(run.Query{Limit: 1000}))
			h.gets(records[0], records[1499])
		})
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func overwrite(t testing.TB, path string, at int, text string) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	check(t, err)
	_, err = file.WriteAt([]byte(text), int64(at))
	check(t, err)
	check(t, file.Close())
}

// What breaks while it is in use is noticed by whoever comes upon it.
func TestHistoryIndexBreaks(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "history.index")
	var log logLines
	h := openHistory(t, connect(t, startServer(t, bus.ServerConfig{})), bus.HistoryConfig{Index: path, Log: log.logger()})
	records := endedRuns(600)
	h.take(records...)
	indexSettled(t, h)
	for i := range 3 {
		overwrite(t, path, 2*os.Getpagesize(), strings.Repeat("noise", 100<<10))
		sameRuns(t, "runs", newest(records, run.Query{}), h.all(run.Query{Limit: 1000}))
		if log.count("damaged") <= i {
			t.Error("the log does not tell")
		}
		more := endedRun(time.Now(), "orders", run.Failed)
		records = append(records, more)
		h.take(more)
		indexSettled(t, h)
		h.gets(more, records[0])
	}
}

func TestHistoryOfAnotherStream(t *testing.T) {
	t.Parallel()
	nc := connect(t, startServer(t, bus.ServerConfig{}))
	path := filepath.Join(t.TempDir(), "history.index")
	anew := func() {
		check(t, jetStream(t, nc).DeleteStream(t.Context(), bus.StreamHistory))
		check(t, bus.Provision(t.Context(), nc, bus.StreamConfig{}))
	}
	records := endedRuns(60)
	h := openHistory(t, nc, bus.HistoryConfig{Index: path})
	h.take(records[:20]...)
	indexSettled(t, h)
	anew() // while it is in use
	h.take(records[20:40]...)
	eventually(t, "the new stream is indexed", func() bool {
		got := h.all(run.Query{})
		return len(got) == 20 && got[0].Run == records[39].Run
	})
	sameRuns(t, "runs", newest(records[20:40], run.Query{}), h.all(run.Query{}))
	h.stop()
	anew() // and while it is not
	h = openHistory(t, nc, bus.HistoryConfig{Index: path})
	sameRuns(t, "runs", nil, h.all(run.Query{}))
	h.take(records[40:]...)
	indexSettled(t, h)
	sameRuns(t, "runs", newest(records[40:], run.Query{}), h.all(run.Query{}))
	h.misses(records[:40]...)
}

// A power failure may take the end of the stream with it, whose sequences then go
// to other records.
func TestHistoryOfAStreamThatLostItsEnd(t *testing.T) {
	t.Parallel()
	dir, before := t.TempDir(), t.TempDir()
	path := filepath.Join(t.TempDir(), "history.index")
	records := endedRuns(60)
	session := func(work func(nc *nats.Conn)) {
		s, err := bus.StartServer(t.Context(), bus.ServerConfig{Dir: dir, NoListen: true})
		check(t, err)
		defer stopServer(t, s)
		work(connect(t, s))
	}
	index := func(path string, some ...*run.Record) func(*nats.Conn) {
		return func(nc *nats.Conn) {
			h := openHistory(t, nc, bus.HistoryConfig{Index: path})
			defer h.stop()
			h.take(some...)
		}
	}
	session(index(path, records[:20]...))
	check(t, os.CopyFS(before, os.DirFS(dir)))
	session(index(path, records[20:40]...))
	for _, lost := range []struct {
		name  string
		other []*run.Record // what came after the loss, without this index
	}{{"nothing after", nil}, {"fewer after", records[40:50]}, {"as many after", records[40:60]}} {
		check(t, os.RemoveAll(dir))
		check(t, os.CopyFS(dir, os.DirFS(before)))
		session(index(filepath.Join(t.TempDir(), "other"), lost.other...))
		stale := filepath.Join(t.TempDir(), "stale")
		data, err := os.ReadFile(path)
		check(t, err)
		check(t, os.WriteFile(stale, data, 0o600))
		session(func(nc *nats.Conn) {
			h := openHistory(t, nc, bus.HistoryConfig{Index: stale})
			defer h.stop()
			want := newest(slices.Concat(records[:20], lost.other), run.Query{})
			sameRuns(t, lost.name, want, h.all(run.Query{}))
		})
	}
}

// What the server cannot recognise any more, the index does: here because another
// shard's messages have other ids.
func TestHistoryOnce(t *testing.T) {
	t.Parallel()
	nc := connect(t, startServer(t, bus.ServerConfig{}))
	records := endedRuns(20)
	for _, r := range records {
		*r.FinishedAt = r.FinishedAt.Add(-time.Minute)
	}
	openHistory(t, nc, bus.HistoryConfig{}).take(records[:10]...)
	h := openHistory(t, nc, bus.HistoryConfig{Shard: 1})
	h.take(records...)
	if got := len(messages(t, nc, bus.StreamHistory)); got != len(records) {
		t.Errorf("the stream holds %d records, want %d", got, len(records))
	}
	sameRuns(t, "runs", newest(records, run.Query{}), h.all(run.Query{}))
}

// Of a run that is in the stream twice, each copy may be dropped.
func TestHistoryListsTwiceStoredRunOnce(t *testing.T) {
	t.Parallel()
	nc := connect(t, startServer(t, bus.ServerConfig{}))
	first := openHistory(t, nc, bus.HistoryConfig{Shard: 0})
	second := openHistory(t, nc, bus.HistoryConfig{Shard: 1})
	records := endedRuns(3)
	first.take(records...)
	second.take(records[0])
	if got := len(messages(t, nc, bus.StreamHistory)); got != 4 {
		t.Fatalf("the stream holds %d records, want 4", got)
	}
	for _, h := range []*keptRuns{first, second} {
		eventually(t, "all is indexed", func() bool { return h.Indexed() && len(h.all(run.Query{})) == 3 })
		sameRuns(t, "runs", newest(records, run.Query{}), h.all(run.Query{}))
	}
	stream, err := jetStream(t, nc).Stream(t.Context(), bus.StreamHistory)
	check(t, err)
	check(t, stream.Purge(t.Context(), jetstream.WithPurgeSequence(4)))
	for _, h := range []*keptRuns{first, second} {
		eventually(t, "the others are gone", func() bool { return len(h.all(run.Query{})) == 1 })
		h.gets(records[0])
		h.misses(records[1:]...)
	}
}

// Several hosts write the stream at once; each lists all runs.
func TestHistoryOfSeveralHosts(t *testing.T) {
	t.Parallel()
	s := startServer(t, bus.ServerConfig{})
	records := endedRuns(900)
	var hosts []*keptRuns
	var givers sync.WaitGroup
	for i := range 3 {
		h := openHistory(t, connect(t, s), bus.HistoryConfig{Shard: i, Window: 32})
		hosts = append(hosts, h)
		givers.Go(func() { h.take(records[i*300 : (i+1)*300]...) })
	}
	givers.Wait()
	for _, h := range hosts {
		eventually(t, "everything is indexed", func() bool { return len(h.all(run.Query{Limit: 1000})) == len(records) })
		sameRuns(t, "runs", newest(records, run.Query{}), h.all(run.Query{Limit: 50}))
		h.gets(records[0], records[450], records[899])
	}
}

func TestHistoryForgetsWhatTheStreamDrops(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		limit func(*jetstream.StreamConfig)
		left  func(records []*run.Record, i int) bool // whether the stream still has it
	}{
		"by number": {
			func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject = 12 },
			func(records []*run.Record, i int) bool {
				later := 0
				for _, r := range records[i+1:] {
					if r.Flow == records[i].Flow && r.State == records[i].State {
						later++
					}
				}
				return later < 12
			},
		},
		"by age": {
			func(c *jetstream.StreamConfig) { c.MaxAge, c.Duplicates = time.Second, time.Second },
			func([]*run.Record, int) bool { return false },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			nc := connect(t, startServer(t, bus.ServerConfig{}))
			stream, err := jetStream(t, nc).Stream(t.Context(), bus.StreamHistory)
			check(t, err)
			cfg := stream.CachedInfo().Config
			tt.limit(&cfg)
			_, err = jetStream(t, nc).UpdateStream(t.Context(), cfg)
			check(t, err)
			h := openHistory(t, nc, bus.HistoryConfig{})
			records := endedRuns(300)
			children(records)
			h.take(records...)
			if got := len(messages(t, nc, bus.StreamHistory)); got == 0 {
				t.Fatal("nothing was published")
			}
			var left []*run.Record
			for i, r := range records {
				if tt.left(records, i) {
					left = append(left, r)
				}
			}
			eventually(t, "the rest is dropped", func() bool { return len(h.all(run.Query{Limit: 1000, Children: true})) == len(left) && h.Indexed() })
			sameRuns(t, "what is left", newest(left, run.Query{}), h.all(run.Query{}))
			sameRuns(t, "all that is left", newest(left, run.Query{Children: true}), h.all(run.Query{Children: true}))
			sameRuns(t, "what is left of a flow", newest(left, run.Query{Flow: "billing"}), h.all(run.Query{Flow: "billing"}))
			h.gets(left...)
			h.misses(records[0])
		})
	}
}

// What others read of a large record fits into a message.
func TestHistoryTruncatesRecords(t *testing.T) {
	t.Parallel()
	nc := connect(t, startServer(t, bus.ServerConfig{}))
	h := openHistory(t, nc, bus.HistoryConfig{})
	big := json.RawMessage(`"` + strings.Repeat("x", 5<<20) + `"`)
	tasks, whole := endedRun(time.Now(), "orders", run.Failed), endedRun(time.Now(), "orders", run.Failed)
	tasks.Tasks[0].Input, tasks.Tasks[0].Output = big, big
	whole.Output, whole.Trigger.Payload, whole.Error.Details = big, big, big
	h.take(tasks, whole)
	indexSettled(t, h)
	h.gets(tasks, whole)
	records, _ := h.kept(nc)
	public := make([]run.Record, len(records))
	for i, m := range records {
		check(t, json.Unmarshal(m.Data, &public[i]))
		if !strings.HasSuffix(string(m.Data), `,"truncated":true}`) {
			t.Errorf("a record ends with %s", m.Data[len(m.Data)-40:])
		}
	}
	if got := public[0]; string(got.Output) != string(tasks.Output) || len(got.Tasks) != 1 || string(got.Tasks[0].Input) != "null" || string(got.Tasks[0].Output) != "null" {
		t.Errorf("the first record is %+v", got)
	}
	if got := public[1]; got.Error == nil || got.Error.Message != "none left" || string(got.Output) != "null" || len(got.Tasks) != 0 || got.Trigger.Name != "nightly" {
		t.Errorf("the second record is %+v", got)
	}
	if len(whole.Error.Details) != len(big) || len(tasks.Tasks[0].Input) != len(big) {
		t.Error("the caller's record was changed")
	}
}

// What others put into the stream is no run.
func TestHistoryPassesOverOthers(t *testing.T) {
	t.Parallel()
	nc := connect(t, startServer(t, bus.ServerConfig{}))
	h := openHistory(t, nc, bus.HistoryConfig{})
	r := endedRun(time.Now(), "orders", run.Failed)
	summary := func(s run.Summary) nats.Header {
		text, err := json.Marshal(s)
		check(t, err)
		return nats.Header{bus.HeaderRun: {string(s.Run)}, bus.HeaderSummary: {string(text)}}
	}
	other, open, odd := r.Summary(), r.Summary(), r.Summary()
	other.Flow, open.State, odd.Run = "billing", run.Running, "no id"
	for _, m := range []*nats.Msg{
		{Subject: "fh.v1.history.orders.failed", Data: []byte("by hand")},
		{Subject: "fh.v1.history.orders.failed", Header: nats.Header{bus.HeaderSummary: {"{"}}},
		{Subject: "fh.v1.history.orders.failed", Header: summary(other)},
		{Subject: "fh.v1.history.orders.failed", Header: summary(odd)},
		{Subject: "fh.v1.history.orders.running", Header: summary(open)},
	} {
		_, err := jetStream(t, nc).PublishMsg(t.Context(), m)
		check(t, err)
	}
	h.take(r)
	indexSettled(t, h)
	sameRuns(t, "runs", []run.Summary{r.Summary()}, h.all(run.Query{}))
}

// After Flush a copy of the server's files has everything, as they were on the disk
// then.
func TestFlushWritesOut(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	nc := connect(t, startServer(t, bus.ServerConfig{Dir: dir}))
	var copies []string
	sync := func() error {
		copied := t.TempDir()
		copies = append(copies, copied)
		return errors.Join(
			bus.ClaimDataDir(copied, "", nil),
			os.CopyFS(filepath.Join(copied, "jetstream"), os.DirFS(filepath.Join(dir, "jetstream"))))
	}
	h := openHistory(t, nc, bus.HistoryConfig{Sync: sync})
	records := endedRuns(40)
	for i := range 4 {
		h.take(records[10*i : 10*(i+1)]...)
	}
	if len(copies) != 4 {
		t.Fatalf("Sync was called %d times, want 4", len(copies))
	}
	check(t, h.Flush(t.Context()))
	if len(copies) != 4 {
		t.Error("Sync was called when there was nothing to flush")
	}
	for i, copied := range copies {
		nc := connect(t, startServer(t, bus.ServerConfig{Dir: copied}))
		if got := len(messages(t, nc, bus.StreamHistory)); got != 10*(i+1) {
			t.Errorf("copy %d has %d records, want %d", i, got, 10*(i+1))
		}
	}
}

func TestFlushFails(t *testing.T) {
	t.Parallel()
	broken := errors.New("the disk is gone")
	failing := true
	h := openHistory(t, connect(t, startServer(t, bus.ServerConfig{})), bus.HistoryConfig{Sync: func() error {
		if failing {
			return broken
		}
		return nil
	}})
	for range 2 {
		if err := h.Flush(t.Context()); !errors.Is(err, broken) {
			t.Errorf("Flush = %v", err)
		}
	}
	failing = false
	check(t, h.Flush(t.Context()))
}

func TestHistoryIndexInUse(t *testing.T) {
	t.Parallel()
	nc := connect(t, startServer(t, bus.ServerConfig{}))
	path := filepath.Join(t.TempDir(), "history.index")
	first := openHistory(t, nc, bus.HistoryConfig{Index: path})
	first.take(endedRuns(3)...)
	indexSettled(t, first)
	second, err := bus.NewHistory(t.Context(), nc, bus.HistoryConfig{Index: path})
	check(t, err)
	if err := second.Run(t.Context()); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("Run = %v, want an error that names the file", err)
	}
	if _, err := second.Get(t.Context(), runID); err == nil || errors.Is(err, run.ErrUnknown) {
		t.Errorf("Get = %v", err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Error("the file that another one uses was removed")
	}
}

// Without Run there is no index to read.
func TestHistoryWaitsForItsIndex(t *testing.T) {
	t.Parallel()
	nc := connect(t, startServer(t, bus.ServerConfig{}))
	h, err := bus.NewHistory(t.Context(), nc, bus.HistoryConfig{Index: filepath.Join(t.TempDir(), "history.index")})
	check(t, err)
	enough := errors.New("the test has seen enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(enough)
	if _, err := h.List(ctx, run.Query{}); !errors.Is(err, enough) {
		t.Errorf("List = %v", err)
	}
	if _, err := h.Get(ctx, runID); !errors.Is(err, enough) {
		t.Errorf("Get = %v", err)
	}
}
