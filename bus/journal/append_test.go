package journal_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/internal/bustest"
)

func TestAppendWaitsForServer(t *testing.T) {
	t.Parallel()
	e := bustest.NewExternal(t)
	e.Start()
	var log bustest.LogLines
	j := e.Journal(e.Connect(&log, e.Address()), &log)
	first, err := j.Append(t.Context(), 0, []byte("before"))
	if err != nil {
		t.Fatal(err)
	}
	e.Stop()
	done := make(chan error, 1)
	go func() { _, err := j.Append(t.Context(), first, []byte("during")); done <- err }()
	bustest.Eventually(t, "the wait is logged", func() bool { return log.Count("waiting to append") > 0 })
	select {
	case err := <-done:
		t.Fatalf("Append returned without a server: %v", err)
	default:
	}
	e.Start()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got := bustest.Commits(t, j); !slices.Equal(got, []string{"before", "during"}) {
		t.Errorf("journal = %q", got)
	}
	if log.Count("connected to NATS again") != 1 || log.Count("could append to the journal again") != 1 {
		t.Error("the log does not tell that the server is back")
	}
}

func TestAppendEndsWithContext(t *testing.T) {
	t.Parallel()
	e := bustest.NewExternal(t)
	e.Start()
	var log bustest.LogLines
	j := e.Journal(e.Connect(&log, e.Address()), &log)
	e.Stop()
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error, 1)
	go func() { _, err := j.Append(ctx, 0, []byte("never")); done <- err }()
	bustest.Eventually(t, "the wait is logged", func() bool { return log.Count("waiting to append") > 0 })
	gone := errors.New("the lease is gone")
	cancel(gone)
	if err := <-done; !errors.Is(err, gone) {
		t.Errorf("Append = %v, want the cause of the context", err)
	}
}

func TestAppendOverRestarts(t *testing.T) {
	t.Parallel()
	e := bustest.NewExternal(t)
	e.Start()
	var log bustest.LogLines
	j := e.Journal(e.Connect(&log, e.Address()), &log)
	var appended atomic.Int64
	var want []string
	var writer sync.WaitGroup
	stop := make(chan struct{})
	writer.Go(func() {
		last := uint64(0)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			commit := fmt.Sprintf("commit %d", i)
			revision, err := j.Append(t.Context(), last, []byte(commit))
			if err != nil {
				t.Errorf("Append: %v", err)
				return
			}
			want, last = append(want, commit), revision
			appended.Add(1)
		}
	})
	for range 3 {
		before := appended.Load()
		bustest.Eventually(t, "appends go on", func() bool { return appended.Load() > before+20 || t.Failed() })
		e.Stop()
		e.Start()
	}
	close(stop)
	writer.Wait()
	if got := bustest.Commits(t, j); !slices.Equal(got, want) {
		t.Errorf("the journal holds %d commits, %d were acknowledged", len(got), len(want))
	}
}

// The server's answer gets lost on the way while the commit is stored.
func TestAppendLostAnswer(t *testing.T) {
	t.Parallel()
	e := bustest.NewExternal(t)
	e.Start()
	relay := bustest.NewRelay(t, e.Address())
	var log bustest.LogLines
	direct := e.Connect(&log, e.Address())
	j := e.Journal(e.Connect(&log, relay.Address()), &log)

	relay.Mute.Store(true)
	done := make(chan uint64, 1)
	go func() {
		revision, err := j.Append(t.Context(), 0, []byte("once"))
		if err != nil {
			t.Error(err)
		}
		done <- revision
	}()
	bustest.Eventually(t, "the journal notices", func() bool { return log.Count("waiting to append") > 0 })
	if got := len(bustest.Messages(t, direct, bus.StreamJournal)); got != 1 {
		t.Fatalf("the journal holds %d commits before the answer arrives, want 1", got)
	}
	relay.Mute.Store(false)
	if revision := <-done; revision != 1 {
		t.Errorf("revision = %d, want 1", revision)
	}
	if got := bustest.Commits(t, j); !slices.Equal(got, []string{"once"}) {
		t.Errorf("journal = %q", got)
	}
}
