package health_test

import (
	"bytes"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/flowhost/flowhost/bus/health"
	"github.com/flowhost/flowhost/bus/internal/bustest"
	"github.com/flowhost/flowhost/bus/journal"
	"github.com/flowhost/flowhost/bus/natsd"
)

// TestFullDisk fills a small disk of its own, with FLOWHOST_FAULTS=1 and the right to
// mount one: commits wait, the host is not ready, and goes on when there is room.
func TestFullDisk(t *testing.T) {
	if os.Getenv("FLOWHOST_FAULTS") == "" {
		return
	}
	for _, mode := range []natsd.Sync{natsd.SyncStrict, natsd.SyncRelaxed} {
		t.Run(string(mode), func(t *testing.T) { fillDisk(t, mode) })
	}
}

func fillDisk(t *testing.T, mode natsd.Sync) {
	disk := t.TempDir()
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=48m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(disk, 0); err != nil {
			t.Error(err)
		}
	})
	ballast := filepath.Join(disk, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 24<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(disk, "data")
	s := bustest.StartServer(t, natsd.Config{Dir: dir, Sync: mode})
	bustest.Connect(t, s)
	j := bustest.OpenJournal(t, bustest.ConnectJournal(t, s), journal.Config{Timeout: 500 * time.Millisecond})
	h := bustest.Watch(t, health.Config{Server: s, Journals: []*journal.Journal{j}, Margin: 4 << 20})

	const commits = 30
	done := make(chan uint64)
	go func() {
		last := uint64(0)
		for range commits {
			revision, err := j.Append(t.Context(), last, bytes.Repeat([]byte{byte(last)}, 1<<20))
			if err != nil {
				t.Error(err)
				break
			}
			last = revision
		}
		done <- last
	}()
	bustest.Unready(t, h, "is full")
	bustest.Eventually(t, "the commit hangs", func() bool { _, err := j.Pending(); return err != nil })
	select {
	case last := <-done:
		t.Fatalf("the disk is large enough for %d commits", last)
	default:
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	if last := <-done; last != commits {
		t.Errorf("the last commit is %d, want %d", last, commits)
	}
	bustest.Ready(t, h)
	wantCommits(t, j, commits)
	bustest.StopServer(t, s)
	wantCommits(t, bustest.OpenJournal(t, bustest.ConnectJournal(t, bustest.StartServer(t, natsd.Config{Dir: dir, Sync: mode})), journal.Config{}), commits)
}

func wantCommits(t *testing.T, j *journal.Journal, commits uint64) {
	t.Helper()
	got := uint64(0)
	err := j.Replay(t.Context(), 0, func(revision uint64, commit []byte) error {
		if revision != got+1 || !bytes.Equal(commit, bytes.Repeat([]byte{byte(got)}, 1<<20)) {
			t.Errorf("revision %d follows %d, or has another commit", revision, got)
		}
		got = revision
		return nil
	})
	if err != nil || got != commits {
		t.Errorf("the journal ends at %d, %v, want %d", got, err, commits)
	}
}
