package history_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/history"
	"github.com/flowhost/flowhost/bus/internal/bustest"
	"github.com/flowhost/flowhost/bus/natsd"
	"github.com/flowhost/flowhost/run"
)

func digest(n int) string { return fmt.Sprintf("sha256:%064x", n) }

// referring makes runs the i-th of which refers to artifact i, and to an artifact of all, and
// passes artifact -1 on without a reference to it.
func referring(n int) []*run.Record {
	records := endedRuns(n)
	for i, r := range records {
		r.Output = json.RawMessage(fmt.Sprintf(`{"own":{"$artifact":%q,"size":1},"again":{"$artifact":%q,"size":1}}`, digest(i), digest(i)))
		r.Trigger.Payload = json.RawMessage(fmt.Sprintf(`[{"$artifact":%q},%q]`, digest(1<<20), digest(1<<21)))
	}
	return records
}

func wantReference(t *testing.T, h *bustest.KeptRuns, when, digest string, want bool) {
	t.Helper()
	if got, err := h.RefersTo(t.Context(), digest); err != nil || got != want {
		t.Errorf("%s: reference to %s: %t, %v", when, digest, got, err)
	}
}

// The index knows the artifacts of a record as soon as it is settled, and so does one that is
// made from the stream, or that another host has.
func TestHistoryKnowsArtifacts(t *testing.T) {
	t.Parallel()
	nc := bustest.Connect(t, bustest.StartServer(t, natsd.Config{}))
	path := filepath.Join(t.TempDir(), "history.index")
	h, other := bustest.OpenHistory(t, nc, history.Config{Index: path}), bustest.OpenHistory(t, nc, history.Config{})
	records := referring(20)
	for i, r := range records {
		check(t, h.Committed(t.Context(), bustest.FinishedNotice(r, uint64(i+1))))
	}
	large := fannedRun("orders", 4_000, 300)
	large.Tasks[100].Output = json.RawMessage(fmt.Sprintf(`{"$artifact":%q}`, digest(77)))
	check(t, h.Committed(t.Context(), bustest.FinishedNotice(large, 21)))
	check(t, h.Settle(t.Context()))
	all := func(when string, h *bustest.KeptRuns) {
		t.Helper()
		for i := range records {
			wantReference(t, h, when, digest(i), true)
		}
		wantReference(t, h, when, digest(1<<20), true)
		wantReference(t, h, when+", of an item", digest(77), true)
		wantReference(t, h, when+", only mentioned", digest(1<<21), false)
		wantReference(t, h, when+", unknown", digest(78), false)
		wantReference(t, h, when+", none", "sha256:x", false)
	}
	all("at once", h)
	check(t, other.Settle(t.Context()))
	all("elsewhere", other)
	h.Stop()
	all("after a restart", bustest.OpenHistory(t, nc, history.Config{Index: path}))
	all("in a new index", bustest.OpenHistory(t, nc, history.Config{}))
}

// What the stream drops refers to nothing any more.
func TestHistoryForgetsArtifacts(t *testing.T) {
	t.Parallel()
	nc := bustest.Connect(t, bustest.StartServer(t, natsd.Config{}))
	stream, err := bustest.JetStream(t, nc).Stream(t.Context(), bus.StreamHistory)
	check(t, err)
	cfg := stream.CachedInfo().Config
	cfg.MaxMsgsPerSubject = 3
	_, err = bustest.JetStream(t, nc).UpdateStream(t.Context(), cfg)
	check(t, err)
	h := bustest.OpenHistory(t, nc, history.Config{})
	records := referring(120)
	h.Take(records...)
	check(t, h.Settle(t.Context())) // the index learns of records later than Get
	left := map[run.ID]bool{}
	kept, _ := h.Kept(nc)
	for _, msg := range kept {
		left[run.ID(msg.Header.Get(bus.HeaderRun))] = true
	}
	if len(left) == 0 || len(left) == len(records) {
		t.Fatalf("%d records are left", len(left))
	}
	for i, r := range records {
		if left[r.Run] {
			wantReference(t, h, "left", digest(i), true)
			continue
		}
		bustest.Eventually(t, "the reference of a record that is gone", func() bool {
			found, err := h.RefersTo(t.Context(), digest(i))
			return err == nil && !found
		})
	}
	wantReference(t, h, "of others", digest(1<<20), true)
	check(t, stream.Purge(t.Context(), jetstream.WithPurgeSubject(bus.HistorySubjects)))
	bustest.Eventually(t, "no reference is left", func() bool {
		found, err := h.RefersTo(t.Context(), digest(1<<20))
		return err == nil && !found
	})
}
