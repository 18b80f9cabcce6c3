package bustest

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/history"
	"github.com/flowhost/flowhost/bus/journal"
	"github.com/flowhost/flowhost/bus/natsd"
	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/run/wire"
)

// site is a data directory whose server is started again and again.
type site struct {
	T   *testing.T
	Dir string

	Server  *natsd.Server
	Journal *journal.Journal
	History *KeptRuns
	Stop    func()
}

func NewSite(t *testing.T) *site {
	s := &site{T: t, Dir: t.TempDir()}
	s.Start()
	return s
}

func (s *site) Start() {
	s.T.Helper()
	s.Server = StartServer(s.T, natsd.Config{Dir: s.Dir})
	s.Journal = OpenJournal(s.T, ConnectJournal(s.T, s.Server), journal.Config{})
	nc := Connect(s.T, s.Server)
	s.History = OpenHistory(s.T, nc, history.Config{Index: filepath.Join(s.Dir, "history.index")})
	s.Stop = func() { s.History.Stop(); StopServer(s.T, s.Server) }
}

// Keep copies a stream as it is. lose puts the copy in its place: what came since is
// lost, and the other streams have lost nothing.
func (s *site) Keep(account, stream string) (lose func()) {
	s.T.Helper()
	kept := s.T.TempDir()
	files := filepath.Join(s.Dir, "jetstream", account, "streams", stream)
	put := func(from, to string) {
		s.T.Helper()
		s.Stop()
		if err := errors.Join(os.RemoveAll(to), os.CopyFS(to, os.DirFS(from))); err != nil {
			s.T.Fatal(err)
		}
		s.Start()
	}
	put(files, kept)
	return func() { s.T.Helper(); put(kept, files) }
}

// Commit appends a commit with the ends of runs, and returns the notices of it.
func (s *site) Commit(after uint64, ends ...*run.Record) []run.Notice {
	s.T.Helper()
	var notices []run.Notice
	var c wire.Commit
	for i, r := range ends {
		n := FinishedNotice(r, after+1)
		n.Index = i
		if err := c.Add(n.Event); err != nil {
			s.T.Fatal(err)
		}
		notices = append(notices, n)
	}
	sealed := c.Seal(after)
	if revision, err := s.Journal.Append(s.T.Context(), after, sealed); revision != after+1 || err != nil {
		s.T.Fatalf("Append after %d = %d, %v", after, revision, err)
	}
	for i := range notices {
		notices[i].Sum = wire.CommitSum(sealed)
	}
	return notices
}

func (s *site) Tell(notices ...[]run.Notice) {
	s.T.Helper()
	for _, n := range slices.Concat(notices...) {
		if err := s.History.Committed(s.T.Context(), n); err != nil {
			s.T.Fatal(err)
		}
	}
	if err := s.History.Flush(s.T.Context()); err != nil {
		s.T.Fatal(err)
	}
}

// Stands checks where publishing is found to have ended.
func (s *site) Stands(want journal.Progress) {
	s.T.Helper()
	if got, err := s.History.Last(s.T.Context(), s.Journal); got != want || err != nil {
		s.T.Errorf("the history stands at %+v, %v, want %+v", got, err, want)
	}
}

// Holds checks which ends the history holds, each as the run's state.
func (s *site) Holds(want ...run.State) {
	s.T.Helper()
	nc := Connect(s.T, s.Server)
	var history []run.State
	for _, m := range Messages(s.T, nc, bus.StreamHistory) {
		history = append(history, run.State(m.Subject[strings.LastIndexByte(m.Subject, '.')+1:]))
	}
	if diff := gocmp.Diff(want, history); diff != "" {
		s.T.Errorf("records of the history (-want +got):\n%s", diff)
	}
}

// EndedAgain is another end of the run.
func EndedAgain(r *run.Record, state run.State) *run.Record {
	again := EndedRun(r.CreatedAt, r.Flow, state)
	again.Run = r.Run
	return again
}
