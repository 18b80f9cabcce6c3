package health_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/health"
	"github.com/flowhost/flowhost/bus/internal/bustest"
	"github.com/flowhost/flowhost/bus/journal"
	"github.com/flowhost/flowhost/bus/natsd"
)

func TestHealthOfNothing(t *testing.T) {
	t.Parallel()
	h := bustest.Watch(t, health.Config{})
	if err := h.Ready(); err != nil {
		t.Error(err)
	}
}

func TestHealthFullJournal(t *testing.T) {
	t.Parallel()
	s := bustest.StartServer(t, natsd.Config{})
	nc, err := s.ConnectEngine()
	if err != nil {
		t.Fatal(err)
	}
	if err := bus.ProvisionJournal(t.Context(), nc, bus.StreamConfig{JournalBytes: 64 << 10}); err != nil {
		t.Fatal(err)
	}
	j := bustest.OpenJournal(t, nc, journal.Config{})
	var log bustest.LogLines
	h := bustest.Watch(t, health.Config{Server: s, Journals: []*journal.Journal{j}, Log: log.Logger()})
	last := uint64(0)
	for range 3 {
		if last, err = j.Append(t.Context(), last, make([]byte, 20<<10)); err != nil {
			t.Fatal(err)
		}
	}
	// Before there is no room at all: what is in progress can go on.
	first := bustest.Unready(t, h, "the journal is full")
	waiting := make(chan error, 1)
	go func() { _, err := j.Append(t.Context(), last, make([]byte, 20<<10)); waiting <- err }()
	bustest.Eventually(t, "the append waits", func() bool { _, err := j.Pending(); return errors.Is(err, journal.ErrFull) })
	if again := bustest.Unready(t, h, "the journal is full"); !again.Since.Equal(first.Since) {
		t.Errorf("since %s, before it was since %s", again.Since, first.Since)
	}
	if err := bus.ProvisionJournal(t.Context(), nc, bus.StreamConfig{JournalBytes: 1 << 20}); err != nil {
		t.Fatal(err)
	}
	bustest.Ready(t, h)
	if err := <-waiting; err != nil {
		t.Error(err)
	}
	if log.Count("no new runs are accepted") != 1 || log.Count("accepted again") != 1 {
		t.Errorf("not one line for each change: %s", log.Text.String())
	}
}

// A commit that hangs shows at once, whether anybody looks or not.
func TestHealthFrozenCommit(t *testing.T) {
	t.Parallel()
	nc, err := bustest.StartServer(t, natsd.Config{}).ConnectEngine()
	if err != nil {
		t.Fatal(err)
	}
	if err := bus.ProvisionJournal(t.Context(), nc, bus.StreamConfig{JournalBytes: 64 << 10}); err != nil {
		t.Fatal(err)
	}
	j := bustest.OpenJournal(t, nc, journal.Config{})
	h := health.New(health.Config{Journals: []*journal.Journal{j}, Frozen: time.Millisecond})
	if err := h.Ready(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { _, err := j.Append(ctx, 0, make([]byte, 100<<10)); done <- err }()
	found := bustest.Unready(t, h, "a commit cannot be written: the journal is full")
	if !errors.Is(found, journal.ErrFull) {
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
	s := bustest.StartServer(t, natsd.Config{})
	h := bustest.Watch(t, health.Config{Server: s, Margin: math.MaxInt64})
	bustest.Unready(t, h, "make room on the disk")
	if err := s.Health(t.Context()); err != nil {
		t.Errorf("the server itself: %v", err)
	}
}
