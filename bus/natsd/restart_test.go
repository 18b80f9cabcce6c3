package natsd_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/flowhost/flowhost/bus/health"
	"github.com/flowhost/flowhost/bus/internal/bustest"
	"github.com/flowhost/flowhost/bus/journal"
	"github.com/flowhost/flowhost/bus/natsd"
)

// TestHealthRestartsServer holds that a commit under way is written, without hands,
// after the NATS server has given up storing messages.
func TestHealthRestartsServer(t *testing.T) {
	t.Parallel()
	s := bustest.StartServer(t, natsd.Config{})
	j := bustest.OpenJournal(t, bustest.ConnectJournal(t, s), journal.Config{Timeout: 200 * time.Millisecond})
	last, err := j.Append(t.Context(), 0, []byte("first"))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.DisableJetStream(); err != nil {
		t.Fatal(err)
	}
	if err := s.Health(t.Context()); err == nil {
		t.Error("Health finds nothing wrong with a server that stores nothing")
	}
	waiting := make(chan error, 1)
	go func() { _, err := j.Append(t.Context(), last, []byte("second")); waiting <- err }()
	var log bustest.LogLines
	h := bustest.Watch(t, health.Config{Server: s, Journals: []*journal.Journal{j}, Log: log.Logger()})
	if err := <-waiting; err != nil {
		t.Fatal(err)
	}
	bustest.Ready(t, h)
	if err := s.Health(t.Context()); err != nil {
		t.Error(err)
	}
	if log.Count("starting the embedded NATS server again") != 1 {
		t.Errorf("the server was not restarted once: %s", log.Text.String())
	}
	var commits []string
	if err := j.Replay(t.Context(), 0, func(_ uint64, c []byte) error { commits = append(commits, string(c)); return nil }); err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(commits) != "[first second]" {
		t.Errorf("the journal holds %q", commits)
	}
}

// TestServerRestartsInMidCommit holds that each commit is there once, and in order,
// when the server goes and comes while commits are on their way.
func TestServerRestartsInMidCommit(t *testing.T) {
	t.Parallel()
	for _, mode := range []natsd.Sync{natsd.SyncStrict, natsd.SyncRelaxed} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			s := bustest.StartServer(t, natsd.Config{Sync: mode})
			j := bustest.OpenJournal(t, bustest.ConnectJournal(t, s), journal.Config{Timeout: 100 * time.Millisecond})
			last := uint64(0)
			const rounds, commits = 5, 40
			for range rounds {
				restarted := make(chan error, 1)
				go func() { restarted <- s.Restart(t.Context()) }()
				for range commits {
					revision, err := j.Append(t.Context(), last, bytes.Repeat([]byte{byte(last)}, 10<<10))
					if err != nil || revision != last+1 {
						t.Fatalf("Append after %d = %d, %v", last, revision, err)
					}
					last = revision
				}
				if err := <-restarted; err != nil {
					t.Fatal(err)
				}
			}
			got := uint64(0)
			err := j.Replay(t.Context(), 0, func(revision uint64, commit []byte) error {
				if revision != got+1 || !bytes.Equal(commit, bytes.Repeat([]byte{byte(got)}, 10<<10)) {
					t.Errorf("revision %d follows %d, or has another commit", revision, got)
				}
				got = revision
				return nil
			})
			if err != nil || got != rounds*commits {
				t.Errorf("the journal ends at %d, %v, want %d", got, err, rounds*commits)
			}
		})
	}
}

func TestServerRestartKeepsAddressAndUsers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := bustest.StartServer(t, natsd.Config{Dir: dir, Listen: "127.0.0.1:0"})
	bustest.Connect(t, s)
	before, url := bustest.ReadCredentials(t, dir, natsd.ClientContext), s.URL()
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if after := bustest.ReadCredentials(t, dir, natsd.ClientContext); after != before || s.URL() != url {
		t.Errorf("the clients' context changed: %v, was %v; address %s, was %s", after, before, s.URL(), url)
	}
	bustest.Dial(t, before)
	bustest.StopServer(t, s)
	if err := s.Restart(t.Context()); err == nil {
		t.Error("a server that was shut down was restarted")
	}
}

// The server may look at its connections, for backlogs, while they come back to the next server.
func TestServerRestartsWhileItLooksAtItsConnections(t *testing.T) {
	t.Parallel()
	s := bustest.StartServer(t, natsd.Config{Dir: t.TempDir()})
	nc := bustest.Connect(t, s)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				s.LookAtConnections()
			}
		}
	}()
	for n := range uint64(5) {
		if err := s.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		bustest.Eventually(t, "the connection comes back", func() bool { return nc.Stats().Reconnects > n })
	}
	close(stop)
	<-stopped
}
