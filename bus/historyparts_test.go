package bus_test

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
	"github.com/flowhost/flowhost/run"
)

// fannedRun is the record of a finished run with so many items, each with an output
// of some bytes that do not repeat.
func fannedRun(flow string, items, noise int) *run.Record {
	r := endedRun(time.Now(), flow, run.Succeeded)
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
			Input:  json.RawMessage(fmt.Sprintf(`{"file":"f%06d"}`, i)), Output: json.RawMessage(`"` + base64.RawStdEncoding.EncodeToString(drawn) + `"`),
		})
	}
	return r
}

// kept gives the messages of records and those of parts.
func (h *keptRuns) kept(nc *nats.Conn) (records, parts []*jetstream.RawStreamMsg) {
	h.t.Helper()
	for _, m := range messages(h.t, nc, bus.StreamHistory) {
		if strings.HasPrefix(m.Subject, "fh.v1.historypart.") {
			parts = append(parts, m)
		} else {
			records = append(records, m)
		}
	}
	return records, parts
}

// folds checks that the record comes without its items.
func (h *keptRuns) folds(want *run.Record) {
	h.t.Helper()
	got, err := h.Get(h.t.Context(), want.Run)
	if err != nil || !got.Truncated || got.Run != want.Run || len(got.Tasks) > 2 {
		h.t.Errorf("Get of %s = %.500v, %v, want it cut short", want.Run, got, err)
	}
}

// A record of any size can be had whole, at once, from the stream and by a new
// index. Others read a message that says what it is.
func TestHistoryKeepsLargeRecordsWhole(t *testing.T) {
	t.Parallel()
	nc := connect(t, startServer(t, bus.ServerConfig{}))
	path := filepath.Join(t.TempDir(), "history.index")
	h := openHistory(t, nc, bus.HistoryConfig{Index: path})
	small, large := endedRun(time.Now(), "orders", run.Succeeded), fannedRun("orders", 100_000, 15)
	for _, r := range []*run.Record{small, large} {
		check(t, h.Committed(t.Context(), finishedNotice(r, 3)))
		h.gets(r)
	}
	check(t, h.Flush(t.Context()))
	h.gets(small, large)
	indexSettled(t, h)
	h.gets(small, large)
	sameRuns(t, "the list", newest([]*run.Record{small, large}, run.Query{}), h.all(run.Query{}))
	records, parts := h.kept(nc)
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
	h.stop()
	h = openHistory(t, nc, bus.HistoryConfig{Index: path})
	h.gets(small, large)
	h = openHistory(t, nc, bus.HistoryConfig{})
	h.gets(small, large)
	sameRuns(t, "the list of a new index", newest([]*run.Record{small, large}, run.Query{}), h.all(run.Query{}))
}

// Without one of its parts, or with one that is not what it was, a record is what its
// message has.
func TestHistoryWithoutAPart(t *testing.T) {
	t.Parallel()
	nc := connect(t, startServer(t, bus.ServerConfig{}))
	var log logLines
	h := openHistory(t, nc, bus.HistoryConfig{Log: log.logger()})
	lost, damaged, well := fannedRun("orders", 50_000, 60), fannedRun("orders", 50_000, 61), fannedRun("orders", 50_000, 62)
	h.take(lost, damaged, well)
	_, parts := h.kept(nc)
	each := len(parts) / 3
	if each < 3 {
		t.Fatalf("there are %d parts", len(parts))
	}
	stream, err := jetStream(t, nc).Stream(t.Context(), bus.StreamHistory)
	check(t, err)
	check(t, stream.DeleteMsg(t.Context(), parts[1].Sequence))
	h.folds(lost)
	h.gets(damaged, well)

	// Elsewhere the stream has other bytes in the place of a part.
	other := connect(t, startServer(t, bus.ServerConfig{}))
	for _, p := range parts[each : each+1] {
		p.Data[len(p.Data)/2] ^= 1
		_, err := jetStream(t, other).PublishMsg(t.Context(), &nats.Msg{Subject: p.Subject, Header: p.Header, Data: p.Data})
		check(t, err)
	}
	h = openHistory(t, other, bus.HistoryConfig{Log: log.logger()})
	h.take(damaged)
	indexSettled(t, h)
	h.folds(damaged)
	if log.count("parts of a record are damaged") == 0 {
		t.Error("the log says nothing of it")
	}
}

// A host that ended after the parts and before the record publishes the record at its
// next start, and again the parts unless the server knows them still.
func TestHistoryAfterPartsWithoutTheirRecord(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	first, large := endedRun(time.Now(), "orders", run.Succeeded), fannedRun("orders", 40_000, 90)
	s.tell(s.commit(0, first))
	ends := s.commit(1, large)
	lose := s.keep("ENGINE", bus.StreamHistory)
	for _, n := range ends {
		check(t, s.history.Committed(t.Context(), n))
	}
	check(t, s.history.Flush(t.Context()))
	_, parts := s.history.kept(connect(t, s.server))
	lose()
	js := jetStream(t, connect(t, s.server))
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
	if got, err := s.history.Last(t.Context(), s.journal); err != nil || got != (bus.Standing{Revision: 1, Told: 1}) {
		t.Errorf("publishing ended at %+v, %v", got, err)
	}
	for _, n := range ends {
		check(t, s.history.Committed(t.Context(), n))
	}
	check(t, s.history.Flush(t.Context()))
	indexSettled(t, s.history)
	s.history.gets(first, large)
	records, again := s.history.kept(connect(t, s.server))
	if len(records) != 2 || len(again) != len(parts)+300 {
		t.Errorf("the stream has %d records and %d parts of %d", len(records), len(again), len(parts))
	}
	if got, err := s.history.Last(t.Context(), s.journal); err != nil || got != (bus.Standing{Revision: 2, Told: 2}) {
		t.Errorf("publishing ended at %+v, %v", got, err)
	}
}

// A server that takes small messages only gets more parts. Several hosts' parts are
// among each other.
func TestHistoryPartsOnASmallServer(t *testing.T) {
	t.Parallel()
	x := newExternal(t)
	x.opts.MaxPayload = 32 << 10
	x.start()
	var log logLines
	nc := x.connect(&log, x.address())
	check(t, bus.Provision(t.Context(), nc, bus.StreamConfig{}))
	var all []*run.Record
	var hosts []*keptRuns
	var givers sync.WaitGroup
	for shard := range 3 {
		h := openHistory(t, x.connect(&log, x.address()), bus.HistoryConfig{Shard: shard, Window: 8})
		hosts = append(hosts, h)
		var own []*run.Record
		for i := range 5 {
			own = append(own, fannedRun("orders", 1000, 100+10*shard+i), endedRun(time.Now(), "orders", run.Succeeded))
		}
		all = append(all, own...)
		givers.Go(func() { h.take(own...) })
	}
	givers.Wait()
	for _, h := range hosts {
		eventually(t, "everything is indexed", func() bool { return len(h.all(run.Query{Limit: 1000})) == len(all) })
		h.gets(all...)
	}
	for _, m := range messages(t, nc, bus.StreamHistory) {
		if len(m.Data) > 32<<10 {
			t.Errorf("a message on %s has %d bytes", m.Subject, len(m.Data))
		}
	}
}

// When a record goes because there are too many, its parts do; those of the records
// that stay stay, however many parts one has.
func TestHistoryPartsGoWithTheirRecords(t *testing.T) {
	t.Parallel()
	nc := connect(t, startServer(t, bus.ServerConfig{}))
	check(t, bus.Provision(t.Context(), nc, bus.StreamConfig{HistoryPerFlow: 2}))
	h := openHistory(t, nc, bus.HistoryConfig{})
	var all []*run.Record
	for i := range 5 {
		all = append(all, fannedRun("orders", 40_000, 70+i))
		h.take(all[i])
	}
	eventually(t, "the rest is dropped", func() bool { return len(h.all(run.Query{})) == 2 && h.Indexed() })
	h.misses(all[:3]...)
	h.gets(all[3:]...)
	named := map[string]int{}
	records, parts := h.kept(nc)
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
	x := newExternal(t)
	x.opts.MaxPayload = 64 << 10
	x.start()
	var log logLines
	nc := x.connect(&log, x.address())
	check(t, bus.Provision(t.Context(), nc, bus.StreamConfig{}))
	h := openHistory(t, nc, bus.HistoryConfig{Timeout: 200 * time.Millisecond, Log: log.logger()})
	indexSettled(t, h)
	x.stop()
	r := fannedRun("orders", 2000, 100)
	check(t, h.Committed(t.Context(), finishedNotice(r, 1)))
	eventually(t, "the wait is logged", func() bool { return log.count("waiting to publish records") > 0 })
	h.gets(r)
	x.start()
	check(t, h.Flush(t.Context()))
	h.gets(r)
	if _, err := h.Get(t.Context(), run.NewID(time.Now())); !errors.Is(err, run.ErrUnknown) {
		t.Errorf("Get of another run = %v", err)
	}
}
