package history_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strconv"
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

// fannedRun is the record of a finished run with so many items, each with an output
// of some bytes that do not repeat.
func fannedRun(flow string, items, noise int) *run.Record {
	r := bustest.EndedRun(time.Now(), flow, run.Succeeded)
	random := rand.NewChaCha8([32]byte{byte(items), byte(noise)})
	drawn := make([]byte, noise)
	finished, ms, ok := r.FinishedAt, 0.25, run.OutcomeSucceeded
	r.Tasks = append(r.Tasks, run.TaskRecord{Task: "copy", State: run.Succeeded, Input: json.RawMessage("null"), Output: json.RawMessage("null")})
	for i := range items {
		random.Read(drawn)
		key := strconv.Itoa(i)
		r.Tasks = append(r.Tasks, run.TaskRecord{
			Task: "copy", Key: &key, State: run.Succeeded, Outcome: &ok, Attempts: 1, StartedAt: finished, FinishedAt: finished, DurationMS: &ms,
			Module: "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
			Input:  json.RawMessage(fmt.Sprintf(`{"file":"%01500d"}`, i)), Output: json.RawMessage(`"` + base64.RawStdEncoding.EncodeToString(drawn) + `"`),
		})
	}
	return r
}

// A record of any size can be had whole, at once, from the stream and by a new
// index. Others read a message that says what it is.
func TestHistoryKeepsLargeRecordsWhole(t *testing.T) {
	t.Parallel()
	nc := bustest.Connect(t, bustest.StartServer(t, natsd.Config{}))
	path := filepath.Join(t.TempDir(), "history.index")
	h := bustest.OpenHistory(t, nc, history.Config{Index: path})
	small, large := bustest.EndedRun(time.Now(), "orders", run.Succeeded), fannedRun("orders", 4_000, 300)
	for _, r := range []*run.Record{small, large} {
		check(t, h.Committed(t.Context(), bustest.FinishedNotice(r, 3)))
		h.Gets(r)
	}
	check(t, h.Flush(t.Context()))
	h.Gets(small, large)
	indexSettled(t, h)
	h.Gets(small, large)
	bustest.SameRuns(t, "the list", bustest.Newest([]*run.Record{small, large}, run.Query{}), h.All(run.Query{}))
	records, parts := h.Kept(nc)
	if len(records) != 2 || len(parts) < 2 || records[1].Sequence < parts[len(parts)-1].Sequence {
		t.Fatalf("the stream has %d records and %d parts", len(records), len(parts))
	}
	var public run.Record
	if err := json.Unmarshal(records[1].Data, &public); err != nil || !public.Truncated || len(public.Tasks) != 2 {
		t.Errorf("others read %.300s, %v", records[1].Data, err)
	}
	if records[0].Header.Get(bus.HeaderParts) != "" {
		t.Error("a small record has parts")
	}
	h.Stop()
	h = bustest.OpenHistory(t, nc, history.Config{Index: path})
	h.Gets(small, large)
	h = bustest.OpenHistory(t, nc, history.Config{})
	h.Gets(small, large)
	bustest.SameRuns(t, "the list of a new index", bustest.Newest([]*run.Record{small, large}, run.Query{}), h.All(run.Query{}))
}

// Without one of its parts, or with one that is not what it was, a record is what its
// message has.
func TestHistoryWithoutAPart(t *testing.T) {
	t.Parallel()
	nc := bustest.Connect(t, bustest.StartServer(t, natsd.Config{}))
	var log bustest.LogLines
	h := bustest.OpenHistory(t, nc, history.Config{Log: log.Logger()})
	lost, damaged, well := fannedRun("orders", 6_000, 500), fannedRun("orders", 6_000, 501), fannedRun("orders", 6_000, 502)
	h.Take(lost, damaged, well)
	_, parts := h.Kept(nc)
	each := len(parts) / 3
	if each < 3 {
		t.Fatalf("there are %d parts", len(parts))
	}
	stream, err := bustest.JetStream(t, nc).Stream(t.Context(), bus.StreamHistory)
	check(t, err)
	check(t, stream.DeleteMsg(t.Context(), parts[1].Sequence))
	h.Folds(lost)
	h.Gets(damaged, well)

	// Elsewhere the stream has other bytes in the place of a part.
	other := bustest.Connect(t, bustest.StartServer(t, natsd.Config{}))
	for _, p := range parts[each : each+1] {
		p.Data[len(p.Data)/2] ^= 1
		_, err := bustest.JetStream(t, other).PublishMsg(t.Context(), &nats.Msg{Subject: p.Subject, Header: p.Header, Data: p.Data})
		check(t, err)
	}
	h = bustest.OpenHistory(t, other, history.Config{Log: log.Logger()})
	h.Take(damaged)
	indexSettled(t, h)
	h.Folds(damaged)
	if log.Count("parts of a record are damaged") == 0 {
		t.Error("the log says nothing of it")
	}
}

// A host that ended after the parts and before the record publishes the record at its
// next start, and again the parts unless the server knows them still.
func TestHistoryAfterPartsWithoutTheirRecord(t *testing.T) {
	t.Parallel()
	s := bustest.NewSite(t)
	first, large := bustest.EndedRun(time.Now(), "orders", run.Succeeded), fannedRun("orders", 6_000, 600)
	s.Tell(s.Commit(0, first))
	ends := s.Commit(1, large)
	lose := s.Keep("ENGINE", bus.StreamHistory)
	for _, n := range ends {
		check(t, s.History.Committed(t.Context(), n))
	}
	check(t, s.History.Flush(t.Context()))
	_, parts := s.History.Kept(bustest.Connect(t, s.Server))
	lose()
	js := bustest.JetStream(t, bustest.Connect(t, s.Server))
	for i, p := range parts {
		if i == len(parts)-1 {
			continue // it was on its way
		}
		_, err := js.PublishMsg(t.Context(), &nats.Msg{Subject: p.Subject, Header: p.Header, Data: p.Data})
		check(t, err)
	}
	for i := range 300 { // by another host
		_, err := js.PublishMsg(t.Context(), &nats.Msg{Subject: "fh.v1.historypart.orders.succeeded." + strconv.Itoa(1+i%40), Data: []byte("of another record")})
		check(t, err)
	}
	if got, err := s.History.Last(t.Context(), s.Journal); err != nil || got != (journal.Progress{InJournal: 1, Published: 1}) {
		t.Errorf("publishing ended at %+v, %v", got, err)
	}
	for _, n := range ends {
		check(t, s.History.Committed(t.Context(), n))
	}
	check(t, s.History.Flush(t.Context()))
	indexSettled(t, s.History)
	s.History.Gets(first, large)
	records, again := s.History.Kept(bustest.Connect(t, s.Server))
	if len(records) != 2 || len(again) != len(parts)+300 {
		t.Errorf("the stream has %d records and %d parts of %d", len(records), len(again), len(parts))
	}
	if got, err := s.History.Last(t.Context(), s.Journal); err != nil || got != (journal.Progress{InJournal: 2, Published: 2}) {
		t.Errorf("publishing ended at %+v, %v", got, err)
	}
}

// A server that takes small messages only gets more parts. Several hosts' parts are
// among each other.
func TestHistoryPartsOnASmallServer(t *testing.T) {
	t.Parallel()
	x := bustest.NewExternal(t)
	x.Opts.MaxPayload = 32 << 10
	x.Start()
	var log bustest.LogLines
	nc := x.Connect(&log, x.Address())
	check(t, bus.Provision(t.Context(), nc, bus.StreamConfig{}))
	var all []*run.Record
	var hosts []*bustest.KeptRuns
	var givers sync.WaitGroup
	for shard := range 3 {
		h := bustest.OpenHistory(t, x.Connect(&log, x.Address()), history.Config{Shard: shard, Window: 8})
		hosts = append(hosts, h)
		var own []*run.Record
		for i := range 5 {
			own = append(own, fannedRun("orders", 1000, 100+10*shard+i), bustest.EndedRun(time.Now(), "orders", run.Succeeded))
		}
		all = append(all, own...)
		givers.Go(func() { h.Take(own...) })
	}
	givers.Wait()
	for _, h := range hosts {
		bustest.Eventually(t, "everything is indexed", func() bool { return len(h.All(run.Query{Limit: 1000})) == len(all) })
		h.Gets(all...)
	}
	for _, m := range bustest.Messages(t, nc, bus.StreamHistory) {
		if len(m.Data) > 32<<10 {
			t.Errorf("a message on %s has %d bytes", m.Subject, len(m.Data))
		}
	}
}

// When a record goes because there are too many, its parts do; those of the records
// that stay stay, however many parts one has.
func TestHistoryPartsGoWithTheirRecords(t *testing.T) {
	t.Parallel()
	nc := bustest.Connect(t, bustest.StartServer(t, natsd.Config{}))
	check(t, bus.Provision(t.Context(), nc, bus.StreamConfig{HistoryPerFlow: 2}))
	h := bustest.OpenHistory(t, nc, history.Config{})
	var all []*run.Record
	for i := range 5 {
		all = append(all, fannedRun("orders", 6_000, 500+i))
		h.Take(all[i])
	}
	bustest.Eventually(t, "the rest is dropped", func() bool { return len(h.All(run.Query{})) == 2 && h.Indexed() })
	h.Misses(all[:3]...)
	h.Gets(all[3:]...)
	named := map[string]int{}
	records, parts := h.Kept(nc)
	for _, p := range parts {
		id, _, _ := strings.Cut(p.Header.Get(jetstream.MsgIDHeader), "/")
		named[id]++
	}
	want := map[string]int{}
	for _, m := range records {
		id, n, _ := strings.Cut(m.Header.Get(bus.HeaderParts), "/")
		want[id], _ = strconv.Atoi(n)
		if want[id] < 3 {
			t.Errorf("a record has %d parts", want[id])
		}
	}
	if diff := gocmp.Diff(want, named); diff != "" {
		t.Errorf("parts of records (-named +there):\n%s", diff)
	}
}

// While the server is away, a large record can be had as well.
func TestHistoryShowsLargeRecordsOnTheirWay(t *testing.T) {
	t.Parallel()
	x := bustest.NewExternal(t)
	x.Opts.MaxPayload = 64 << 10
	x.Start()
	var log bustest.LogLines
	nc := x.Connect(&log, x.Address())
	check(t, bus.Provision(t.Context(), nc, bus.StreamConfig{}))
	h := bustest.OpenHistory(t, nc, history.Config{Timeout: 200 * time.Millisecond, Log: log.Logger()})
	indexSettled(t, h)
	x.Stop()
	r := fannedRun("orders", 2000, 100)
	check(t, h.Committed(t.Context(), bustest.FinishedNotice(r, 1)))
	bustest.Eventually(t, "the wait is logged", func() bool { return log.Count("waiting to publish records") > 0 })
	h.Gets(r)
	x.Start()
	check(t, h.Flush(t.Context()))
	h.Gets(r)
	if _, err := h.Get(t.Context(), run.NewID(time.Now())); !errors.Is(err, run.ErrUnknown) {
		t.Errorf("Get of another run = %v", err)
	}
}
