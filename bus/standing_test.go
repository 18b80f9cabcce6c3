package bus_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/run/wire"
)

// site is a data folder whose server is started again and again.
type site struct {
	t   *testing.T
	dir string

	server  *bus.Server
	journal *bus.Journal
	history *keptRuns
	stop    func()
}

func newSite(t *testing.T) *site {
	s := &site{t: t, dir: t.TempDir()}
	s.start()
	return s
}

func (s *site) start() {
	s.t.Helper()
	s.server = startServer(s.t, bus.ServerConfig{Dir: s.dir})
	s.journal = openJournal(s.t, connectJournal(s.t, s.server), bus.JournalConfig{})
	nc := connect(s.t, s.server)
	s.history = openHistory(s.t, nc, bus.HistoryConfig{Index: filepath.Join(s.dir, "history.index")})
	s.stop = func() { s.history.stop(); stopServer(s.t, s.server) }
}

// keep copies a stream as it is. lose puts the copy in its place: what came since is
// lost, and the other streams have lost nothing.
func (s *site) keep(account, stream string) (lose func()) {
	s.t.Helper()
	kept := s.t.TempDir()
	files := filepath.Join(s.dir, "jetstream", account, "streams", stream)
	put := func(from, to string) {
		s.t.Helper()
		s.stop()
		if err := errors.Join(os.RemoveAll(to), os.CopyFS(to, os.DirFS(from))); err != nil {
			s.t.Fatal(err)
		}
		s.start()
	}
	put(files, kept)
	return func() { s.t.Helper(); put(kept, files) }
}

// commit appends a commit with the ends of runs, and gives what is to be told of it.
func (s *site) commit(after uint64, ends ...*run.Record) []run.Notice {
	s.t.Helper()
	var notices []run.Notice
	var c wire.Commit
	for i, r := range ends {
		n := finishedNotice(r, after+1)
		n.Index = i
		if err := c.Add(n.Event); err != nil {
			s.t.Fatal(err)
		}
		notices = append(notices, n)
	}
	sealed := c.Seal(after)
	if revision, err := s.journal.Append(s.t.Context(), after, sealed); revision != after+1 || err != nil {
		s.t.Fatalf("Append after %d = %d, %v", after, revision, err)
	}
	for i := range notices {
		notices[i].Sum = wire.CommitSum(sealed)
	}
	return notices
}

func (s *site) tell(notices ...[]run.Notice) {
	s.t.Helper()
	for _, n := range slices.Concat(notices...) {
		if err := s.history.Committed(s.t.Context(), n); err != nil {
			s.t.Fatal(err)
		}
	}
	if err := s.history.Flush(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}

// stands checks where publishing is found to have ended.
func (s *site) stands(want bus.Standing) {
	s.t.Helper()
	if got, err := s.history.Last(s.t.Context(), s.journal); got != want || err != nil {
		s.t.Errorf("the history stands at %+v, %v, want %+v", got, err, want)
	}
}

// holds checks which ends the history holds, each as the run's state.
func (s *site) holds(want ...run.State) {
	s.t.Helper()
	nc := connect(s.t, s.server)
	var history []run.State
	for _, m := range messages(s.t, nc, bus.StreamHistory) {
		history = append(history, run.State(m.Subject[strings.LastIndexByte(m.Subject, '.')+1:]))
	}
	if diff := gocmp.Diff(want, history); diff != "" {
		s.t.Errorf("records of the history (-want +got):\n%s", diff)
	}
}

// endedAgain is another end of the run.
func endedAgain(r *run.Record, state run.State) *run.Record {
	again := endedRun(r.CreatedAt, r.Flow, state)
	again.Run = r.Run
	return again
}

// A journal that has lost its end gives the revisions again, to other commits. Their
// events are other events, though the runs are the same and the server has just
// taken those of the lost ones.
func TestRevisionsThatAreGivenAgain(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.stands(bus.Standing{})
	now := time.Now()
	first, second, third := endedRun(now, "orders", run.Succeeded), endedRun(now, "orders", run.Failed), endedRun(now, "orders", run.Failed)
	s.tell(s.commit(0, first))
	lose := s.keep("ENGINE", bus.StreamJournal)
	s.tell(s.commit(1, second, third), s.commit(2, endedRun(now, "orders", run.Canceled)))
	s.stands(bus.Standing{Revision: 3, Told: 3})
	lose()
	s.stands(bus.Standing{Revision: 1, Told: 3})

	// The next process commits more than was lost, and dies before it tells of it.
	second, third = endedAgain(second, run.Canceled), endedAgain(third, run.Succeeded)
	unpublished := s.commit(1, second, third)
	s.commit(2)
	s.commit(3)
	s.stop()
	s.start()
	s.stands(bus.Standing{Revision: 1, Told: 3})
	s.tell(unpublished)
	s.stands(bus.Standing{Revision: 2, Index: 1, Told: 2})
	s.tell(unpublished[1:]) // a start gives again what may have been published
	s.holds(run.Succeeded, run.Failed, run.Failed, run.Canceled, run.Canceled, run.Succeeded)
	s.history.gets(first, second, third)
}

// Of two ends of a run the later one counts, also for an index that knew the first
// one and for one that is made anew.
func TestHistoryOfARunThatEndsAgain(t *testing.T) {
	t.Parallel()
	nc := connect(t, startServer(t, bus.ServerConfig{}))
	for _, state := range []run.State{run.Succeeded, run.Failed, run.Canceled} {
		t.Run(string(state), func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "history.index")
			flow := "again-" + string(state)
			h := openHistory(t, nc, bus.HistoryConfig{Index: path})
			old := endedRun(time.Now(), flow, run.Failed)
			*old.FinishedAt = old.FinishedAt.Add(-time.Minute) // the index is asked for it
			lost, again := finishedNotice(old, 7), finishedNotice(endedAgain(old, state), 7)
			lost.Sum, again.Sum = 1, 2
			again.Event.At = lost.Event.At
			for _, n := range []run.Notice{lost, again, again} {
				if err := errors.Join(h.Committed(t.Context(), n), h.Flush(t.Context())); err != nil {
					t.Fatal(err)
				}
				h.stop() // and the index has it
				h = openHistory(t, nc, bus.HistoryConfig{Index: path})
				sameRuns(t, "the list", []run.Summary{n.Record.Summary()}, h.all(run.Query{Flow: flow}))
			}
			kept := slices.DeleteFunc(messages(t, nc, bus.StreamHistory), func(m *jetstream.RawStreamMsg) bool {
				return m.Header.Get(bus.HeaderRun) != string(old.Run)
			})
			if len(kept) != 2 {
				t.Errorf("the stream has %d records of the run, want its two ends", len(kept))
			}
			h.stop()
			h = openHistory(t, nc, bus.HistoryConfig{})
			sameRuns(t, "the list of a new index", []run.Summary{again.Record.Summary()}, h.all(run.Query{Flow: flow}))
			h.gets(again.Record)
		})
	}
}

// The stream may lose its end too, and give the place of a record to another one of
// the same run.
func TestHistoryIndexOfALostEnd(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	lose := s.keep("ENGINE", bus.StreamHistory)
	r := endedRun(time.Now(), "orders", run.Failed)
	s.history.take(r)
	index := filepath.Join(s.dir, "history.index")
	s.stop()
	knows := s.t.TempDir() + "/index"
	if err := os.Rename(index, knows); err != nil {
		t.Fatal(err)
	}
	s.start()
	lose()
	s.history.take(endedAgain(r, run.Failed))
	want := s.history.all(run.Query{})
	s.stop()
	if err := os.Rename(knows, index); err != nil {
		t.Fatal(err)
	}
	s.start()
	sameRuns(t, "the list", want, s.history.all(run.Query{}))
}
