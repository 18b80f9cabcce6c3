package history_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/history"
	"github.com/flowhost/flowhost/bus/internal/bustest"
	"github.com/flowhost/flowhost/bus/journal"
	"github.com/flowhost/flowhost/bus/natsd"
	"github.com/flowhost/flowhost/run"
)

// endedRuns are n runs of three flows in all final states, in the order in which
// they were accepted, one each second up to now.
func endedRuns(n int) []*run.Record {
	flows := []string{"orders", "orders/eu", "billing"}
	states := []run.State{run.Succeeded, run.Succeeded, run.Failed, run.Succeeded, run.Canceled}
	start := time.Now().Add(-time.Duration(n) * time.Second)
	all := make([]*run.Record, n)
	for i := range all {
		all[i] = bustest.EndedRun(start.Add(time.Duration(i)*time.Second), flows[i%len(flows)], states[i%len(states)])
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

// indexSettled waits until everything is in the index.
func indexSettled(t testing.TB, h *bustest.KeptRuns) {
	t.Helper()
	bustest.Eventually(t, "the index has everything", func() bool { return h.Indexed() })
}

func TestHistoryLists(t *testing.T) {
	t.Parallel()
	h := bustest.OpenHistory(t, bustest.Connect(t, bustest.StartServer(t, natsd.Config{})), history.Config{})
	records := endedRuns(60)
	middle := records[30]
	children(records)
	h.Take(records...)
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
			"nominal since":      {NominalSince: middle.CreatedAt},
			"nominal until":      {NominalUntil: middle.CreatedAt, Flow: "billing"},
			"a nominal range":    {NominalSince: records[10].CreatedAt, NominalUntil: middle.CreatedAt},
		} {
			for _, limit := range []int{0, 1, 7} {
				q.Limit = limit
				bustest.SameRuns(t, fmt.Sprintf("%s, %s by %d", name, when, limit), bustest.Newest(records, q), h.All(q))
			}
		}
		h.Gets(records...)
		h.Misses(bustest.EndedRun(time.Now(), "orders", run.Failed))
	}
	check("at once")
	indexSettled(t, h)
	check("from the index")
	if page := h.Page(run.Query{Limit: 60, Children: true}); len(page.Runs) != 60 || page.Next != "" {
		t.Errorf("the last page has %d runs and goes on at %q", len(page.Runs), page.Next)
	}
}

// A record is there before it is in the stream, and once only.
func TestHistoryShowsWhatIsOnItsWay(t *testing.T) {
	t.Parallel()
	x := bustest.NewExternal(t)
	x.Start()
	var log bustest.LogLines
	nc := x.Connect(&log, x.Address())
	if err := bus.Provision(t.Context(), nc, bus.StreamConfig{}); err != nil {
		t.Fatal(err)
	}
	h := bustest.OpenHistory(t, nc, history.Config{Timeout: 200 * time.Millisecond, Log: log.Logger()})
	records := endedRuns(20)
	h.Take(records[:10]...)
	indexSettled(t, h)
	x.Stop()
	for _, r := range records[10:] {
		for range 2 {
			if err := h.Committed(t.Context(), bustest.FinishedNotice(r, 7)); err != nil {
				t.Fatal(err)
			}
		}
	}
	bustest.Eventually(t, "the wait is logged", func() bool { return log.Count("waiting to publish records") > 0 })
	bustest.SameRuns(t, "without a server", bustest.Newest(records, run.Query{}), h.All(run.Query{Limit: 3}))
	h.Gets(records[10:]...)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := h.Flush(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Flush without a server = %v", err)
	}
	x.Start()
	if err := h.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	indexSettled(t, h)
	bustest.SameRuns(t, "with it again", bustest.Newest(records, run.Query{}), h.All(run.Query{Limit: 3}))
	h.Gets(records...)
	if got := len(bustest.Messages(t, nc, bus.StreamHistory)); got != len(records) {
		t.Errorf("the stream holds %d records, want %d", got, len(records))
	}
}

// A page follows the one before, whatever finishes meanwhile.
func TestHistoryCursorAmongNewRuns(t *testing.T) {
	t.Parallel()
	h := bustest.OpenHistory(t, bustest.Connect(t, bustest.StartServer(t, natsd.Config{})), history.Config{})
	records := endedRuns(300)
	h.Take(records[:100]...)
	var giver sync.WaitGroup
	giver.Go(func() { h.Take(records[100:]...) })
	q := run.Query{Limit: 9, Before: records[100].Run}
	for range 20 {
		bustest.SameRuns(t, "the first hundred", bustest.Newest(records[:100], run.Query{}), h.All(q))
	}
	giver.Wait()
	bustest.SameRuns(t, "all", bustest.Newest(records, run.Query{}), h.All(run.Query{Limit: 9}))
}

func TestHistoryMessages(t *testing.T) {
	t.Parallel()
	s := bustest.StartServer(t, natsd.Config{})
	nc, j := bustest.Connect(t, s), bustest.OpenJournal(t, bustest.ConnectJournal(t, s), journal.Config{})
	h := bustest.OpenHistory(t, nc, history.Config{Shard: 3})
	r := bustest.EndedRun(time.Now(), "orders/eu", run.Failed)
	r.Error.Code = "a" + strings.Repeat("é", 100)
	n := bustest.FinishedNotice(r, 41)
	n.Index, n.Sum = 7, 0x2a
	for _, n := range []run.Notice{bustest.Notice(40, 0, &run.Started{}), n} {
		if err := h.Committed(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := bustest.Messages(t, nc, bus.StreamHistory)
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
	if got, err := h.Last(t.Context(), j); got != (journal.Progress{Published: 41}) || err != nil {
		t.Errorf("Last = %+v, %v", got, err)
	}
	other := bustest.OpenHistory(t, nc, history.Config{})
	if got, err := other.Last(t.Context(), j); got != (journal.Progress{}) || err != nil {
		t.Errorf("Last of another shard = %+v, %v", got, err)
	}
}

func TestHistoryRefuses(t *testing.T) {
	t.Parallel()
	h := bustest.OpenHistory(t, bustest.Connect(t, bustest.StartServer(t, natsd.Config{})), history.Config{})
	for name, r := range map[string]*run.Record{
		"a flow that is no token": bustest.EndedRun(time.Now(), "a.b", run.Failed),
		"an open run":             bustest.EndedRun(time.Now(), "orders", run.Running),
	} {
		if err := h.Committed(t.Context(), bustest.FinishedNotice(r, 1)); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
	old := bustest.EndedRun(time.Now().Add(-40*24*time.Hour), "orders", run.Failed)
	*old.FinishedAt = old.CreatedAt
	h.Take(old)
	h.Misses(old)
	if got := h.All(run.Query{}); len(got) != 0 {
		t.Errorf("the list has %v", got)
	}
}

func TestHistoryAfterRestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(t.TempDir(), "history.index")
	records := endedRuns(90)
	for i := range 3 {
		s, err := natsd.Start(t.Context(), natsd.Config{Dir: dir, NoListen: true})
		if err != nil {
			t.Fatal(err)
		}
		h := bustest.OpenHistory(t, bustest.Connect(t, s), history.Config{Index: path})
		bustest.SameRuns(t, "before", bustest.Newest(records[:30*i], run.Query{}), h.All(run.Query{}))
		j := bustest.OpenJournal(t, bustest.ConnectJournal(t, s), journal.Config{})
		if got, err := h.Last(t.Context(), j); got != (journal.Progress{Published: min(uint64(i), 1) * 30}) || err != nil {
			t.Errorf("Last = %+v, %v", got, err)
		}
		h.Take(records[30*i : 30*(i+1)]...)
		bustest.SameRuns(t, "after", bustest.Newest(records[:30*(i+1)], run.Query{}), h.All(run.Query{}))
		h.Gets(records[:30*(i+1)]...)
		h.Stop()
		if _, err := h.List(t.Context(), run.Query{}); err == nil {
			t.Error("List of a history that has ended succeeded")
		}
		bustest.StopServer(t, s)
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
			nc := bustest.Connect(t, bustest.StartServer(t, natsd.Config{}))
			path := filepath.Join(t.TempDir(), "sub", "history.index")
			h := bustest.OpenHistory(t, nc, history.Config{Index: path})
			records := endedRuns(1500)
			h.Take(records[:1400]...)
			indexSettled(t, h)
			h.Stop()
			spoil(t, path)
			h = bustest.OpenHistory(t, nc, history.Config{Index: path})
			h.Take(records[1400:]...)
			bustest.SameRuns(t, "runs", bustest.Newest(records, run.Query{}), h.All(run.Query{Limit: 1000}))
			indexSettled(t, h)
			bustest.SameRuns(t, "runs", bustest.Newest(records, run.Query{}), h.All(run.Query{Limit: 1000}))
			h.Gets(records[0], records[1499])
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
	var log bustest.LogLines
	h := bustest.OpenHistory(t, bustest.Connect(t, bustest.StartServer(t, natsd.Config{})), history.Config{Index: path, Log: log.Logger()})
	records := endedRuns(600)
	h.Take(records...)
	indexSettled(t, h)
	for i := range 3 {
		overwrite(t, path, 2*os.Getpagesize(), strings.Repeat("noise", 100<<10))
		bustest.SameRuns(t, "runs", bustest.Newest(records, run.Query{}), h.All(run.Query{Limit: 1000}))
		if log.Count("damaged") <= i {
			t.Error("the log does not tell")
		}
		more := bustest.EndedRun(time.Now(), "orders", run.Failed)
		records = append(records, more)
		h.Take(more)
		indexSettled(t, h)
		h.Gets(more, records[0])
	}
}

// A damaged length of the list of free pages is noticed before the library frees them.
func TestHistoryIndexBreaksInItsFreeList(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "history.index")
	var log bustest.LogLines
	h := bustest.OpenHistory(t, bustest.Connect(t, bustest.StartServer(t, natsd.Config{})), history.Config{Index: path, Log: log.Logger()})
	records := endedRuns(600)
	h.Take(records...)
	indexSettled(t, h)
	// A commit that is still under way puts another list in place of the damaged one.
	bustest.Eventually(t, "the damage is noticed", func() bool {
		text, err := os.ReadFile(path)
		check(t, err)
		for at := 0; at < len(text); at += os.Getpagesize() {
			const freeList = 0x10
			if binary.NativeEndian.Uint16(text[at+8:]) == freeList {
				overwrite(t, path, at+12, "\x00\x00\x40\x00")
			}
		}
		more := bustest.EndedRun(time.Now(), "orders", run.Failed)
		records = append(records, more)
		h.Take(more)
		indexSettled(t, h)
		return log.Count("damaged") > 0
	})
	bustest.SameRuns(t, "runs", bustest.Newest(records, run.Query{}), h.All(run.Query{Limit: 1000}))
	if log.Count("already freed") > 0 {
		t.Errorf("the library came upon the damage first: %s", log.All())
	}
}

func TestHistoryOfAnotherStream(t *testing.T) {
	t.Parallel()
	nc := bustest.Connect(t, bustest.StartServer(t, natsd.Config{}))
	path := filepath.Join(t.TempDir(), "history.index")
	anew := func() {
		check(t, bustest.JetStream(t, nc).DeleteStream(t.Context(), bus.StreamHistory))
		check(t, bus.Provision(t.Context(), nc, bus.StreamConfig{}))
	}
	records := endedRuns(60)
	h := bustest.OpenHistory(t, nc, history.Config{Index: path})
	h.Take(records[:20]...)
	indexSettled(t, h)
	anew() // while it is in use
	h.Take(records[20:40]...)
	bustest.Eventually(t, "the new stream is indexed", func() bool {
		got := h.All(run.Query{})
		return len(got) == 20 && got[0].Run == records[39].Run
	})
	bustest.SameRuns(t, "runs", bustest.Newest(records[20:40], run.Query{}), h.All(run.Query{}))
	h.Stop()
	anew() // and while it is not
	h = bustest.OpenHistory(t, nc, history.Config{Index: path})
	bustest.SameRuns(t, "runs", nil, h.All(run.Query{}))
	h.Take(records[40:]...)
	indexSettled(t, h)
	bustest.SameRuns(t, "runs", bustest.Newest(records[40:], run.Query{}), h.All(run.Query{}))
	h.Misses(records[:40]...)
}

// A power failure may take the end of the stream with it, whose sequences then go
// to other records.
func TestHistoryOfAStreamThatLostItsEnd(t *testing.T) {
	t.Parallel()
	dir, before := t.TempDir(), t.TempDir()
	path := filepath.Join(t.TempDir(), "history.index")
	records := endedRuns(60)
	session := func(work func(nc *nats.Conn)) {
		s, err := natsd.Start(t.Context(), natsd.Config{Dir: dir, NoListen: true})
		check(t, err)
		defer bustest.StopServer(t, s)
		work(bustest.Connect(t, s))
	}
	index := func(path string, some ...*run.Record) func(*nats.Conn) {
		return func(nc *nats.Conn) {
			h := bustest.OpenHistory(t, nc, history.Config{Index: path})
			defer h.Stop()
			h.Take(some...)
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
			h := bustest.OpenHistory(t, nc, history.Config{Index: stale})
			defer h.Stop()
			want := bustest.Newest(slices.Concat(records[:20], lost.other), run.Query{})
			bustest.SameRuns(t, lost.name, want, h.All(run.Query{}))
		})
	}
}

// What the server cannot recognise any more, the index does: here because another
// shard's messages have other ids.
func TestHistoryOnce(t *testing.T) {
	t.Parallel()
	nc := bustest.Connect(t, bustest.StartServer(t, natsd.Config{}))
	records := endedRuns(20)
	for _, r := range records {
		*r.FinishedAt = r.FinishedAt.Add(-time.Minute)
	}
	bustest.OpenHistory(t, nc, history.Config{}).Take(records[:10]...)
	h := bustest.OpenHistory(t, nc, history.Config{Shard: 1})
	h.Take(records...)
	if got := len(bustest.Messages(t, nc, bus.StreamHistory)); got != len(records) {
		t.Errorf("the stream holds %d records, want %d", got, len(records))
	}
	bustest.SameRuns(t, "runs", bustest.Newest(records, run.Query{}), h.All(run.Query{}))
}

// Of a run that is in the stream twice, each copy may be dropped.
func TestHistoryListsTwiceStoredRunOnce(t *testing.T) {
	t.Parallel()
	nc := bustest.Connect(t, bustest.StartServer(t, natsd.Config{}))
	first := bustest.OpenHistory(t, nc, history.Config{Shard: 0})
	second := bustest.OpenHistory(t, nc, history.Config{Shard: 1})
	records := endedRuns(3)
	first.Take(records...)
	second.Take(records[0])
	if got := len(bustest.Messages(t, nc, bus.StreamHistory)); got != 4 {
		t.Fatalf("the stream holds %d records, want 4", got)
	}
	for _, h := range []*bustest.KeptRuns{first, second} {
		bustest.Eventually(t, "all is indexed", func() bool { return h.Indexed() && len(h.All(run.Query{})) == 3 })
		bustest.SameRuns(t, "runs", bustest.Newest(records, run.Query{}), h.All(run.Query{}))
	}
	stream, err := bustest.JetStream(t, nc).Stream(t.Context(), bus.StreamHistory)
	check(t, err)
	check(t, stream.Purge(t.Context(), jetstream.WithPurgeSequence(4)))
	for _, h := range []*bustest.KeptRuns{first, second} {
		bustest.Eventually(t, "the others are gone", func() bool { return len(h.All(run.Query{})) == 1 })
		h.Gets(records[0])
		h.Misses(records[1:]...)
	}
}

// Several hosts write the stream at once; each lists all runs.
func TestHistoryOfSeveralHosts(t *testing.T) {
	t.Parallel()
	s := bustest.StartServer(t, natsd.Config{})
	records := endedRuns(900)
	var hosts []*bustest.KeptRuns
	var givers sync.WaitGroup
	for i := range 3 {
		h := bustest.OpenHistory(t, bustest.Connect(t, s), history.Config{Shard: i, Window: 32})
		hosts = append(hosts, h)
		givers.Go(func() { h.Take(records[i*300 : (i+1)*300]...) })
	}
	givers.Wait()
	for _, h := range hosts {
		bustest.Eventually(t, "everything is indexed", func() bool { return len(h.All(run.Query{Limit: 1000})) == len(records) })
		bustest.SameRuns(t, "runs", bustest.Newest(records, run.Query{}), h.All(run.Query{Limit: 50}))
		h.Gets(records[0], records[450], records[899])
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
			nc := bustest.Connect(t, bustest.StartServer(t, natsd.Config{}))
			stream, err := bustest.JetStream(t, nc).Stream(t.Context(), bus.StreamHistory)
			check(t, err)
			cfg := stream.CachedInfo().Config
			tt.limit(&cfg)
			_, err = bustest.JetStream(t, nc).UpdateStream(t.Context(), cfg)
			check(t, err)
			h := bustest.OpenHistory(t, nc, history.Config{})
			records := endedRuns(300)
			children(records)
			h.Take(records...)
			if got := len(bustest.Messages(t, nc, bus.StreamHistory)); got == 0 {
				t.Fatal("nothing was published")
			}
			var left []*run.Record
			for i, r := range records {
				if tt.left(records, i) {
					left = append(left, r)
				}
			}
			bustest.Eventually(t, "the rest is dropped", func() bool { return len(h.All(run.Query{Limit: 1000, Children: true})) == len(left) && h.Indexed() })
			bustest.SameRuns(t, "what is left", bustest.Newest(left, run.Query{}), h.All(run.Query{}))
			bustest.SameRuns(t, "all that is left", bustest.Newest(left, run.Query{Children: true}), h.All(run.Query{Children: true}))
			bustest.SameRuns(t, "what is left of a flow", bustest.Newest(left, run.Query{Flow: "billing"}), h.All(run.Query{Flow: "billing"}))
			h.Gets(left...)
			h.Misses(records[0])
		})
	}
}

// What others read of a large record fits into a message.
func TestHistoryTruncatesRecords(t *testing.T) {
	t.Parallel()
	nc := bustest.Connect(t, bustest.StartServer(t, natsd.Config{}))
	h := bustest.OpenHistory(t, nc, history.Config{})
	big := json.RawMessage(`"` + strings.Repeat("x", 5<<20) + `"`)
	tasks, whole := bustest.EndedRun(time.Now(), "orders", run.Failed), bustest.EndedRun(time.Now(), "orders", run.Failed)
	tasks.Tasks[0].Input, tasks.Tasks[0].Output = big, big
	whole.Output, whole.Trigger.Payload, whole.Error.Details = big, big, big
	h.Take(tasks, whole)
	indexSettled(t, h)
	h.Gets(tasks, whole)
	records, _ := h.Kept(nc)
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
	nc := bustest.Connect(t, bustest.StartServer(t, natsd.Config{}))
	h := bustest.OpenHistory(t, nc, history.Config{})
	r := bustest.EndedRun(time.Now(), "orders", run.Failed)
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
		_, err := bustest.JetStream(t, nc).PublishMsg(t.Context(), m)
		check(t, err)
	}
	h.Take(r)
	indexSettled(t, h)
	bustest.SameRuns(t, "runs", []run.Summary{r.Summary()}, h.All(run.Query{}))
}

// After Flush a copy of the server's files has everything, as they were on the disk
// then.
func TestFlushWritesOut(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	nc := bustest.Connect(t, bustest.StartServer(t, natsd.Config{Dir: dir}))
	var copies []string
	sync := func() error {
		copied := t.TempDir()
		copies = append(copies, copied)
		return errors.Join(
			natsd.ClaimDataDir(copied, "", nil),
			os.CopyFS(filepath.Join(copied, "jetstream"), os.DirFS(filepath.Join(dir, "jetstream"))))
	}
	h := bustest.OpenHistory(t, nc, history.Config{Sync: sync})
	records := endedRuns(40)
	for i := range 4 {
		h.Take(records[10*i : 10*(i+1)]...)
	}
	if len(copies) != 4 {
		t.Fatalf("Sync was called %d times, want 4", len(copies))
	}
	check(t, h.Flush(t.Context()))
	if len(copies) != 4 {
		t.Error("Sync was called when there was nothing to flush")
	}
	for i, copied := range copies {
		nc := bustest.Connect(t, bustest.StartServer(t, natsd.Config{Dir: copied}))
		if got := len(bustest.Messages(t, nc, bus.StreamHistory)); got != 10*(i+1) {
			t.Errorf("copy %d has %d records, want %d", i, got, 10*(i+1))
		}
	}
}

func TestFlushFails(t *testing.T) {
	t.Parallel()
	broken := errors.New("the disk is gone")
	failing := true
	h := bustest.OpenHistory(t, bustest.Connect(t, bustest.StartServer(t, natsd.Config{})), history.Config{Sync: func() error {
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
	nc := bustest.Connect(t, bustest.StartServer(t, natsd.Config{}))
	path := filepath.Join(t.TempDir(), "history.index")
	first := bustest.OpenHistory(t, nc, history.Config{Index: path})
	first.Take(endedRuns(3)...)
	indexSettled(t, first)
	second, err := history.New(t.Context(), nc, history.Config{Index: path})
	check(t, err)
	if err := second.Run(t.Context()); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("Run = %v, want an error that names the file", err)
	}
	if _, err := second.Get(t.Context(), bustest.RunID); err == nil || errors.Is(err, run.ErrUnknown) {
		t.Errorf("Get = %v", err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Error("the file that another one uses was removed")
	}
}

// Without Run there is no index to read.
func TestHistoryWaitsForItsIndex(t *testing.T) {
	t.Parallel()
	nc := bustest.Connect(t, bustest.StartServer(t, natsd.Config{}))
	h, err := history.New(t.Context(), nc, history.Config{Index: filepath.Join(t.TempDir(), "history.index")})
	check(t, err)
	enough := errors.New("the test has seen enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(enough)
	if _, err := h.List(ctx, run.Query{}); !errors.Is(err, enough) {
		t.Errorf("List = %v", err)
	}
	if _, err := h.Get(ctx, bustest.RunID); !errors.Is(err, enough) {
		t.Errorf("Get = %v", err)
	}
}
