package history

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/run"
)

func someEntries() []indexEntry {
	at := time.Date(2026, 3, 29, 1, 2, 3, 456789, time.UTC)
	return []indexEntry{
		{seq: 1 << 40, Summary: run.Summary{
			Run: run.NewID(at), Flow: "orders/eu", State: run.Failed, CreatedAt: at, FinishedAt: &at,
			Trigger: run.TriggerSummary{Kind: run.TriggerSchedule, Name: "nightly", Time: at.Add(-time.Hour)}, Error: "no_stock", Parent: run.NewID(at),
		}},
		{Summary: run.Summary{Run: run.NewID(at), State: run.Succeeded}},
	}
}

func TestHistoryEntryIsKept(t *testing.T) {
	t.Parallel()
	for _, want := range someEntries() {
		got, err := decodeEntry(want.Run, want.State, want.encode())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(indexEntry{})); diff != "" {
			t.Errorf("entry (-want +got):\n%s", diff)
		}
	}
}

func TestHistoryEntryRefusesParts(t *testing.T) {
	t.Parallel()
	whole := someEntries()[0].encode()
	for n := range whole {
		if _, err := decodeEntry("r", run.Failed, whole[:n]); err == nil {
			t.Errorf("%d of %d bytes were taken", n, len(whole))
		}
	}
	if _, err := decodeEntry("r", run.Failed, append(whole, 0)); err == nil {
		t.Error("one byte too many was taken")
	}
}

// The file may hold anything after a disk has lied.
func FuzzDecodeHistoryEntry(f *testing.F) {
	for _, e := range someEntries() {
		f.Add(e.encode())
	}
	f.Fuzz(func(t *testing.T, stored []byte) {
		e, err := decodeEntry("r", run.Failed, stored)
		if err != nil {
			return
		}
		again, err := decodeEntry("r", run.Failed, e.encode())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(e, again, cmp.AllowUnexported(indexEntry{})); diff != "" {
			t.Errorf("encoded and decoded again (-first +second):\n%s", diff)
		}
	})
}

// Whoever may write the stream may put anything into a header.
func FuzzParseHistoryEntry(f *testing.F) {
	for _, e := range someEntries() {
		text, err := json.Marshal(e.Summary)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(bus.HistorySubject(e.Flow, e.State), string(text))
	}
	f.Fuzz(func(t *testing.T, subject, summary string) {
		e, ok := parseEntry(7, subject, nats.Header{bus.HeaderSummary: {summary}})
		if !ok {
			return
		}
		flow, state, ok := splitLane(runKey(e.Flow, e.State, e.Run))
		if !ok || flow != e.Flow || state != e.State {
			t.Errorf("the key of %q, %q is read as %q, %q", e.Flow, e.State, flow, state)
		}
		if _, err := decodeEntry(e.Run, e.State, e.encode()); err != nil {
			t.Errorf("%+v cannot be stored: %v", e, err)
		}
	})
}

// When the index does not keep up for long, what waits for it is forgotten, and read
// from the stream later.
func TestHistoryBoundsWhatIsNotIndexed(t *testing.T) {
	t.Parallel()
	h := &Store{fresh: map[run.ID]*freshRecord{}, many: make(chan struct{}, 1)}
	store := func(i int) {
		id := run.ID(fmt.Sprintf("%026d", i))
		h.enter(&freshRecord{entry: indexEntry{Summary: run.Summary{Run: id}}, body: []byte("{}")})
		h.settled(&nats.Msg{Header: nats.Header{bus.HeaderRun: {string(id)}}}, uint64(i))
	}
	for i := range indexQueue {
		store(i + 1)
	}
	if len(h.fresh) != indexQueue || len(h.stored) != indexQueue || len(h.many) != 1 {
		t.Fatalf("%d records wait, %d of them stored, with %d signals", len(h.fresh), len(h.stored), len(h.many))
	}
	store(indexQueue + 1)
	if len(h.fresh) > 0 || len(h.stored) > 0 {
		t.Errorf("%d records wait, %d of them stored", len(h.fresh), len(h.stored))
	}
}
