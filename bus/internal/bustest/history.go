package bustest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
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
	"github.com/flowhost/flowhost/bus/history"
	"github.com/flowhost/flowhost/run"
)

// KeptRuns is a history at work.
type KeptRuns struct {
	*history.Store
	t    testing.TB
	Stop func()
}

// OpenHistory starts a history that ends with the test, or by stop.
func OpenHistory(t testing.TB, nc *nats.Conn, cfg history.Config) *KeptRuns {
	t.Helper()
	if cfg.Index == "" {
		cfg.Index = filepath.Join(t.TempDir(), "history.index")
	}
	h, err := history.New(t.Context(), nc, cfg)
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
	return &KeptRuns{h, t, stop}
}

// Take gives records to the history and waits until they are in the stream.
func (h *KeptRuns) Take(records ...*run.Record) {
	h.t.Helper()
	for i, r := range records {
		if err := h.Committed(h.t.Context(), FinishedNotice(r, uint64(i+1))); err != nil {
			h.t.Fatal(err)
		}
	}
	if err := h.Flush(h.t.Context()); err != nil {
		h.t.Fatal(err)
	}
}

func (h *KeptRuns) Page(q run.Query) run.Page {
	h.t.Helper()
	page, err := h.List(h.t.Context(), q)
	if err != nil {
		h.t.Fatal(err)
	}
	return page
}

// All lists everything that matches, page by page.
func (h *KeptRuns) All(q run.Query) []run.Summary {
	h.t.Helper()
	var all []run.Summary
	for {
		page := h.Page(q)
		all = append(all, page.Runs...)
		if page.Next == "" {
			return all
		}
		q.Before = page.Next
	}
}

// Gets checks that each record can be had, or that none can.
func (h *KeptRuns) Gets(records ...*run.Record) {
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

func (h *KeptRuns) Misses(records ...*run.Record) {
	h.t.Helper()
	for _, r := range records {
		if _, err := h.Get(h.t.Context(), r.Run); !errors.Is(err, run.ErrUnknown) {
			h.t.Errorf("Get of %s = %v, want run.ErrUnknown", r.Run, err)
		}
	}
}

// FinishedNotice is the notice of a run's end.
func FinishedNotice(r *run.Record, revision uint64) run.Notice {
	return run.Notice{Revision: revision, Flow: r.Flow, Record: r, Event: run.Event{
		Run: r.Run, At: *r.FinishedAt, Data: &run.Finished{State: r.State, Output: r.Output, Failure: r.Error},
	}}
}

// EndedRun is the record of a run that was accepted at the given time and has just
// finished.
func EndedRun(at time.Time, flow string, state run.State) *run.Record {
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

// Newest gives the summaries of the records that match, as a list shows them.
func Newest(records []*run.Record, q run.Query) []run.Summary {
	var all []run.Summary
	for _, r := range records {
		if s := r.Summary(); q.Matches(&s) {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b run.Summary) int { return cmp.Compare(b.Run, a.Run) })
	return all
}

func SameRuns(t testing.TB, what string, want, got []run.Summary) {
	t.Helper()
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// Kept gives the messages of records and those of parts.
func (h *KeptRuns) Kept(nc *nats.Conn) (records, parts []*jetstream.RawStreamMsg) {
	h.t.Helper()
	for _, m := range Messages(h.t, nc, bus.StreamHistory) {
		if strings.HasPrefix(m.Subject, "fh.v1.historypart.") {
			parts = append(parts, m)
		} else {
			records = append(records, m)
		}
	}
	return records, parts
}

// Folds checks that the record comes without its items.
func (h *KeptRuns) Folds(want *run.Record) {
	h.t.Helper()
	got, err := h.Get(h.t.Context(), want.Run)
	if err != nil || !got.Truncated || got.Run != want.Run || len(got.Tasks) > 2 {
		h.t.Errorf("Get of %s = %.500v, %v, want it cut short", want.Run, got, err)
	}
}
