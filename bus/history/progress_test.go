package history_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/history"
	"github.com/flowhost/flowhost/bus/internal/bustest"
	"github.com/flowhost/flowhost/bus/journal"
	"github.com/flowhost/flowhost/bus/natsd"
	"github.com/flowhost/flowhost/run"
)

// A journal that has lost its end gives the revisions again, to other commits. Their
// events are other events, though the runs are the same and the server has just
// taken those of the lost ones.
func TestRevisionsThatAreGivenAgain(t *testing.T) {
	t.Parallel()
	s := bustest.NewSite(t)
	s.Stands(journal.Progress{})
	now := time.Now()
	first, second, third := bustest.EndedRun(now, "orders", run.Succeeded), bustest.EndedRun(now, "orders", run.Failed), bustest.EndedRun(now, "orders", run.Failed)
	s.Tell(s.Commit(0, first))
	lose := s.Keep("ENGINE", bus.StreamJournal)
	s.Tell(s.Commit(1, second, third), s.Commit(2, bustest.EndedRun(now, "orders", run.Canceled)))
	s.Stands(journal.Progress{InJournal: 3, Published: 3})
	lose()
	s.Stands(journal.Progress{InJournal: 1, Published: 3})

	// The next process commits more than was lost, and dies before it tells of it.
	second, third = bustest.EndedAgain(second, run.Canceled), bustest.EndedAgain(third, run.Succeeded)
	unpublished := s.Commit(1, second, third)
	s.Commit(2)
	s.Commit(3)
	s.Stop()
	s.Start()
	s.Stands(journal.Progress{InJournal: 1, Published: 3})
	s.Tell(unpublished)
	s.Stands(journal.Progress{InJournal: 2, Index: 1, Published: 2})
	s.Tell(unpublished[1:]) // a start gives again what may have been published
	s.Holds(run.Succeeded, run.Failed, run.Failed, run.Canceled, run.Canceled, run.Succeeded)
	s.History.Gets(first, second, third)
}

// Of two ends of a run the later one counts, also for an index that knew the first
// one and for one that is made anew.
func TestHistoryOfARunThatEndsAgain(t *testing.T) {
	t.Parallel()
	nc := bustest.Connect(t, bustest.StartServer(t, natsd.Config{}))
	for _, state := range []run.State{run.Succeeded, run.Failed, run.Canceled} {
		t.Run(string(state), func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "history.index")
			flow := "again-" + string(state)
			h := bustest.OpenHistory(t, nc, history.Config{Index: path})
			old := bustest.EndedRun(time.Now(), flow, run.Failed)
			*old.FinishedAt = old.FinishedAt.Add(-time.Minute) // the index is asked for it
			lost, again := bustest.FinishedNotice(old, 7), bustest.FinishedNotice(bustest.EndedAgain(old, state), 7)
			lost.Sum, again.Sum = 1, 2
			again.Event.At = lost.Event.At
			for _, n := range []run.Notice{lost, again, again} {
				if err := errors.Join(h.Committed(t.Context(), n), h.Flush(t.Context())); err != nil {
					t.Fatal(err)
				}
				h.Stop() // and the index has it
				h = bustest.OpenHistory(t, nc, history.Config{Index: path})
				bustest.SameRuns(t, "the list", []run.Summary{n.Record.Summary()}, h.All(run.Query{Flow: flow}))
			}
			kept := slices.DeleteFunc(bustest.Messages(t, nc, bus.StreamHistory), func(m *jetstream.RawStreamMsg) bool {
				return m.Header.Get(bus.HeaderRun) != string(old.Run)
			})
			if len(kept) != 2 {
				t.Errorf("the stream has %d records of the run, want its two ends", len(kept))
			}
			h.Stop()
			h = bustest.OpenHistory(t, nc, history.Config{})
			bustest.SameRuns(t, "the list of a new index", []run.Summary{again.Record.Summary()}, h.All(run.Query{Flow: flow}))
			h.Gets(again.Record)
		})
	}
}

// The stream may lose its end too, and give the place of a record to another one of
// the same run.
func TestHistoryIndexOfALostEnd(t *testing.T) {
	t.Parallel()
	s := bustest.NewSite(t)
	lose := s.Keep("ENGINE", bus.StreamHistory)
	r := bustest.EndedRun(time.Now(), "orders", run.Failed)
	s.History.Take(r)
	index := filepath.Join(s.Dir, "history.index")
	s.Stop()
	knows := s.T.TempDir() + "/index"
	if err := os.Rename(index, knows); err != nil {
		t.Fatal(err)
	}
	s.Start()
	lose()
	s.History.Take(bustest.EndedAgain(r, run.Failed))
	want := s.History.All(run.Query{})
	s.Stop()
	if err := os.Rename(knows, index); err != nil {
		t.Fatal(err)
	}
	s.Start()
	bustest.SameRuns(t, "the list", want, s.History.All(run.Query{}))
}
