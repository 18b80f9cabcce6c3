package bus_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/flowhost/flowhost/bus"
)

// watch runs a watcher with the test.
func watch(t *testing.T, cfg bus.HealthConfig) *bus.Health {
	t.Helper()
	cfg.Every = 5 * time.Millisecond
	h := bus.NewHealth(cfg)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- h.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Run = %v", err)
		}
	})
	return h
}

// unready waits until the watcher finds something, whose text holds the part.
func unready(t *testing.T, h *bus.Health, part string) *bus.UnreadyError {
	t.Helper()
	var found *bus.UnreadyError
	eventually(t, "not ready: "+part, func() bool {
		return errors.As(h.Ready(), &found) && strings.Contains(found.Error(), part)
	})
	if found.Since.IsZero() || found.Advice == "" {
		t.Errorf("%+v does not say since when, or what to do", found)
	}
	return found
}

func ready(t *testing.T, h *bus.Health) {
	t.Helper()
	eventually(t, "ready again", func() bool { return h.Ready() == nil })
}

func TestHealthOfNothing(t *testing.T) {
	t.Parallel()
	h := watch(t, bus.HealthConfig{})
	if err := h.Ready(); err != nil {
		t.Error(err)
	}
}

func TestHealthFullJournal(t *testing.T) {
	t.Parallel()
	s := startServer(t, bus.ServerConfig{})
	nc, err := s.ConnectEngine()
	if err != nil {
		t.Fatal(err)
	}
	if err := bus.ProvisionJournal(t.Context(), nc, bus.StreamConfig{JournalBytes: 64 << 10}); err != nil {
		t.Fatal(err)
	}
	j := openJournal(t, nc, bus.JournalConfig{})
	var log logLines
	h := watch(t, bus.HealthConfig{Server: s, Journals: []*bus.Journal{j}, Log: log.logger()})
	last := uint64(0)
	for range 3 {
		if last, err = j.Append(t.Context(), last, make([]byte, 20<<10)); err != nil {
			t.Fatal(err)
		}
	}
	// Before there is no room at all: what is in progress can go on.
	first := unready(t, h, "the journal is full")
	waiting := make(chan error, 1)
	go func() { _, err := j.Append(t.Context(), last, make([]byte, 20<<10)); waiting <- err }()
	eventually(t, "the append waits", func() bool { _, err := j.Pending(); return errors.Is(err, bus.ErrFull) })
	if again := unready(t, h, "the journal is full"); !again.Since.Equal(first.Since) {
		t.Errorf("since %s, before it was since %s", again.Since, first.Since)
	}
	if err := bus.ProvisionJournal(t.Context(), nc, bus.StreamConfig{JournalBytes: 1 << 20}); err != nil {
		t.Fatal(err)
	}
	ready(t, h)
	if err := <-waiting; err != nil {
		t.Error(err)
	}
	if log.count("no new runs are accepted") != 1 || log.count("accepted again") != 1 {
		t.Errorf("not one line for each change: %s", log.text.String())
	}
}

// A commit that hangs shows at once, whether anybody looks or not.
func TestHealthFrozenCommit(t *testing.T) {
	t.Parallel()
	nc, err := startServer(t, bus.ServerConfig{}).ConnectEngine()
	if err != nil {
		t.Fatal(err)
	}
	if err := bus.ProvisionJournal(t.Context(), nc, bus.StreamConfig{JournalBytes: 64 << 10}); err != nil {
		t.Fatal(err)
	}
	j := openJournal(t, nc, bus.JournalConfig{})
	h := bus.NewHealth(bus.HealthConfig{Journals: []*bus.Journal{j}, Frozen: time.Millisecond})
	if err := h.Ready(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { _, err := j.Append(ctx, 0, make([]byte, 100<<10)); done <- err }()
	found := unready(t, h, "a commit cannot be written: the journal is full")
	if !errors.Is(found, bus.ErrFull) {
		t.Errorf("%v does not tell the error behind it", found)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("Append = %v", err)
	}
	if err := h.Ready(); err != nil {
		t.Error(err)
	}
}

func TestHealthDiskBelowMargin(t *testing.T) {
	t.Parallel()
	s := startServer(t, bus.ServerConfig{})
	h := watch(t, bus.HealthConfig{Server: s, Margin: math.MaxInt64})
	unready(t, h, "make room on the disk")
	if err := s.Health(t.Context()); err != nil {
		t.Errorf("the server itself: %v", err)
	}
}

// TestHealthRestartsServer holds that a commit under way is written, without hands,
// after the NATS server has given up storing messages.
func TestHealthRestartsServer(t *testing.T) {
	t.Parallel()
	s := startServer(t, bus.ServerConfig{})
	j := openJournal(t, connectJournal(t, s), bus.JournalConfig{Timeout: 200 * time.Millisecond})
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
	var log logLines
	h := watch(t, bus.HealthConfig{Server: s, Journals: []*bus.Journal{j}, Log: log.logger()})
	if err := <-waiting; err != nil {
		t.Fatal(err)
	}
	ready(t, h)
	if err := s.Health(t.Context()); err != nil {
		t.Error(err)
	}
	if log.count("starting the embedded NATS server again") != 1 {
		t.Errorf("the server was not restarted once: %s", log.text.String())
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
	for _, mode := range []bus.Sync{bus.SyncStrict, bus.SyncRelaxed} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			s := startServer(t, bus.ServerConfig{Sync: mode})
			j := openJournal(t, connectJournal(t, s), bus.JournalConfig{Timeout: 100 * time.Millisecond})
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
	s := startServer(t, bus.ServerConfig{Dir: dir, Listen: "127.0.0.1:0"})
	connect(t, s)
	before, url := readCredentials(t, dir, bus.ClientContext), s.URL()
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if after := readCredentials(t, dir, bus.ClientContext); after != before || s.URL() != url {
		t.Errorf("the clients' context changed: %v, was %v; address %s, was %s", after, before, s.URL(), url)
	}
	dial(t, before)
	stopServer(t, s)
	if err := s.Restart(t.Context()); err == nil {
		t.Error("a server that was shut down was restarted")
	}
}
