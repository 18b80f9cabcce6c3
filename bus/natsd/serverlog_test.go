package natsd_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/internal/bustest"
	"github.com/flowhost/flowhost/bus/natsd"
)

// After a kill the server's index is older than the files of the streams. That is no
// damage, and the log has one line about it, not two warnings for each stream.
func TestIndexOfAKilledServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	log := new(bustest.LogLines)
	serve := func(payloads ...string) {
		t.Helper()
		log = new(bustest.LogLines)
		s := bustest.StartServer(t, natsd.Config{Dir: dir, Log: log.Logger()})
		nc := bustest.Connect(t, s)
		bustest.Publish(t, nc, "fh.v1.trigger.orders", payloads...)
		bustest.Publish(t, nc, bus.DeadLetterSubject("orders"), payloads...)
		if n := len(bustest.Messages(t, nc, bus.StreamTriggers)); payloads == nil && n != 4 {
			t.Errorf("%d messages are left", n)
		}
		bustest.StopServer(t, s)
	}
	serve("1", "2")
	indexes, err := filepath.Glob(filepath.Join(dir, "jetstream", "ENGINE", "streams", "*", "msgs", "index.db"))
	if err != nil || len(indexes) < 2 {
		t.Fatalf("%v, %v", indexes, err)
	}
	old := map[string][]byte{}
	for _, name := range indexes {
		if old[name], err = os.ReadFile(name); err != nil {
			t.Fatal(err)
		}
	}
	serve("3", "4")
	for name, text := range old {
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	serve()
	if log.Count("level=WARN") != 0 || log.Count("level=ERROR") != 0 || log.Count("the last stop was not graceful") != 1 || log.Count("streams=2") != 1 {
		t.Errorf("the log is:\n%s", log.All())
	}
	serve()
	if log.Count("not graceful") != 0 {
		t.Errorf("after a graceful stop the log is:\n%s", log.All())
	}
}
