package journal_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/internal/bustest"
	"github.com/flowhost/flowhost/bus/journal"
	"github.com/flowhost/flowhost/bus/natsd"
	"github.com/flowhost/flowhost/internal/testkit/journaltest"
	"github.com/flowhost/flowhost/run"
)

func TestJournal(t *testing.T) {
	t.Parallel()
	for _, mode := range []natsd.Sync{natsd.SyncStrict, natsd.SyncRelaxed} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			journaltest.Run(t, func(t *testing.T) (journaltest.Journal, func() journaltest.Journal) {
				s := bustest.StartServer(t, natsd.Config{Sync: mode})
				first := bustest.ConnectJournal(t, s)
				return bustest.OpenJournal(t, first, journal.Config{}), func() journaltest.Journal {
					nc, err := s.ConnectEngine()
					if err != nil {
						t.Fatal(err)
					}
					return bustest.OpenJournal(t, nc, journal.Config{})
				}
			})
		})
	}
}

func TestJournalShardsAreApart(t *testing.T) {
	t.Parallel()
	nc := bustest.ConnectJournal(t, bustest.StartServer(t, natsd.Config{}))
	last := map[int]uint64{}
	want := map[int]string{}
	for i := range 6 {
		shard := i % 2
		j, err := journal.New(t.Context(), nc, shard, journal.Config{})
		if err != nil {
			t.Fatal(err)
		}
		if last[shard], err = j.Append(t.Context(), last[shard], []byte("same")); err != nil {
			t.Fatal(err)
		}
		want[shard] += fmt.Sprint(last[shard], " ")
	}
	for shard := range 2 {
		j, err := journal.New(t.Context(), nc, shard, journal.Config{})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if err := j.Replay(t.Context(), 0, func(r uint64, _ []byte) error { got += fmt.Sprint(r, " "); return nil }); err != nil {
			t.Fatal(err)
		}
		if got != want[shard] {
			t.Errorf("shard %d: revisions %s, want %s", shard, got, want[shard])
		}
	}
}

func TestJournalRepeatAfterOthers(t *testing.T) {
	t.Parallel()
	j := bustest.OpenJournal(t, bustest.ConnectJournal(t, bustest.StartServer(t, natsd.Config{})), journal.Config{})
	first, err := j.Append(t.Context(), 0, []byte("first"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := j.Append(t.Context(), first, []byte("second")); err != nil {
		t.Fatal(err)
	}
	if again, err := j.Append(t.Context(), 0, []byte("first")); err != nil || again != first {
		t.Errorf("repeated Append = %d, %v, want %d", again, err, first)
	}
}

// An acknowledgement that gets lost is the case for which appends can be repeated:
// a relay between the journal and the server swallows the first ones.
func TestJournalLostAcknowledgement(t *testing.T) {
	t.Parallel()
	s := bustest.StartServer(t, natsd.Config{})
	nc := bustest.ConnectJournal(t, s)
	mute, err := s.ConnectEngine()
	if err != nil {
		t.Fatal(err)
	}
	j := bustest.OpenJournal(t, mute, journal.Config{Timeout: 100 * time.Millisecond})
	stored, err := nc.SubscribeSync(bus.JournalSubject(0))
	if err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	// A context that ends as soon as the commit is on its way loses the answer.
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { _, err := j.Append(ctx, 0, []byte("once")); done <- err }()
	if _, err := stored.NextMsg(bustest.Patience); err != nil {
		t.Fatal(err)
	}
	cancel()
	<-done
	bustest.Eventually(t, "the commit is stored", func() bool { return len(bustest.Messages(t, nc, bus.StreamJournal)) == 1 })

	revision, err := j.Append(t.Context(), 0, []byte("once"))
	if err != nil || revision != 1 {
		t.Errorf("repeated Append = %d, %v, want 1", revision, err)
	}
	if _, err := j.Append(t.Context(), 0, []byte("other")); !errors.Is(err, run.ErrFenced) {
		t.Errorf("Append of another commit = %v, want run.ErrFenced", err)
	}
	if got := len(bustest.Messages(t, nc, bus.StreamJournal)); got != 1 {
		t.Errorf("the journal holds %d commits, want 1", got)
	}
}

func TestJournalFullWaits(t *testing.T) {
	t.Parallel()
	nc, err := bustest.StartServer(t, natsd.Config{}).ConnectEngine()
	if err != nil {
		t.Fatal(err)
	}
	if err := bus.ProvisionJournal(t.Context(), nc, bus.StreamConfig{JournalBytes: 64 << 10}); err != nil {
		t.Fatal(err)
	}
	j := bustest.OpenJournal(t, nc, journal.Config{})
	commit := bytes.Repeat([]byte("x"), 20<<10)
	last := uint64(0)
	for range 3 {
		if last, err = j.Append(t.Context(), last, commit); err != nil {
			t.Fatal(err)
		}
	}
	for _, room := range []func() error{
		func() error {
			return bus.ProvisionJournal(t.Context(), nc, bus.StreamConfig{JournalBytes: 84 << 10})
		},
		func() error { return j.Compact(t.Context(), last-1) },
	} {
		waiting := make(chan appended, 1)
		go func() {
			revision, err := j.Append(t.Context(), last, commit)
			waiting <- appended{revision, err}
		}()
		bustest.Eventually(t, "the append says what it waits for", func() bool {
			since, err := j.Pending()
			return !since.IsZero() && errors.Is(err, journal.ErrFull)
		})
		if err := room(); err != nil {
			t.Fatal(err)
		}
		got := <-waiting
		if got.err != nil || got.revision != last+1 {
			t.Fatalf("Append after there was room = %d, %v, want %d", got.revision, got.err, last+1)
		}
		last = got.revision
		if since, err := j.Pending(); !since.IsZero() || err != nil {
			t.Errorf("Pending after the append = %v, %v", since, err)
		}
	}
}

// appended is the answer of Append.
type appended struct {
	revision uint64
	err      error
}

func TestJournalNeedsItsStream(t *testing.T) {
	t.Parallel()
	nc, err := bustest.StartServer(t, natsd.Config{}).ConnectEngine()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := journal.New(t.Context(), nc, 0, journal.Config{}); err == nil {
		t.Error("NewJournal does not miss the stream")
	}
}

func TestJournalClosedConnection(t *testing.T) {
	t.Parallel()
	nc := bustest.ConnectJournal(t, bustest.StartServer(t, natsd.Config{}))
	j := bustest.OpenJournal(t, nc, journal.Config{})
	nc.Close()
	if _, err := j.Append(t.Context(), 0, []byte("never")); !errors.Is(err, nats.ErrConnectionClosed) {
		t.Errorf("Append = %v, want nats.ErrConnectionClosed", err)
	}
	if err := j.Replay(t.Context(), 0, func(uint64, []byte) error { return nil }); !errors.Is(err, nats.ErrConnectionClosed) {
		t.Errorf("Replay = %v, want nats.ErrConnectionClosed", err)
	}
}

func BenchmarkJournalAppend(b *testing.B) {
	for _, mode := range []natsd.Sync{natsd.SyncStrict, natsd.SyncRelaxed} {
		for _, size := range []int{1 << 10, 100 << 10} {
			b.Run(fmt.Sprintf("%s/%dKB", mode, size>>10), func(b *testing.B) {
				j := bustest.OpenJournal(b, bustest.ConnectJournal(b, bustest.StartServer(b, natsd.Config{Sync: mode})), journal.Config{})
				commit := bytes.Repeat([]byte("x"), size)
				last := uint64(0)
				b.SetBytes(int64(size))
				for b.Loop() {
					var err error
					if last, err = j.Append(b.Context(), last, commit); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkJournalReplay(b *testing.B) {
	j := bustest.OpenJournal(b, bustest.ConnectJournal(b, bustest.StartServer(b, natsd.Config{Sync: natsd.SyncRelaxed})), journal.Config{})
	commit := bytes.Repeat([]byte("x"), 1<<10)
	const commits = 20_000
	last := uint64(0)
	for range commits {
		var err error
		if last, err = j.Append(b.Context(), last, commit); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		count := 0
		if err := j.Replay(b.Context(), 0, func(uint64, []byte) error { count++; return nil }); err != nil || count != commits {
			b.Fatal(count, err)
		}
	}
	b.ReportMetric(float64(commits)*float64(b.N)/b.Elapsed().Seconds(), "commits/s")
}
