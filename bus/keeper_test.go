package bus_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/internal/bustest"
	"github.com/flowhost/flowhost/bus/natsd"
	"github.com/flowhost/flowhost/run"
)

// The limits of streams change while the host runs; the log states which, and that
// messages go with a lower one. What the journal holds is never removed.
func TestKeeperConfigure(t *testing.T) {
	t.Parallel()
	nc := bustest.Connect(t, bustest.StartServer(t, natsd.Config{}))
	log := &bustest.LogLines{}
	k := bus.NewKeeper(bus.KeeperConfig{Engine: nc, App: nc, Log: log.Logger()})
	if err := k.Provision(t.Context()); err != nil {
		t.Fatal(err)
	}
	js := bustest.JetStream(t, nc)
	for range 20 {
		if _, err := js.Publish(t.Context(), bus.HistorySubject("orders", run.Succeeded), bytes.Repeat([]byte("x"), 1<<10)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := js.Publish(t.Context(), bus.JournalSubject(0), bytes.Repeat([]byte("x"), 1<<10)); err != nil {
		t.Fatal(err)
	}

	if err := k.Configure(t.Context(), bus.StreamConfig{HistoryBytes: 10 << 10, HistoryAge: time.Hour, LogBytes: 1 << 30}); err != nil {
		t.Fatal(err)
	}
	if got := bustest.StreamLimits(t, nc, bus.StreamHistory); got.Bytes != 10<<10 || got.Age != time.Hour {
		t.Errorf("history: %+v", got)
	}
	if got := len(bustest.Messages(t, nc, bus.StreamHistory)); got == 0 || got >= 10 {
		t.Errorf("the history has %d records", got)
	}
	for _, line := range []string{
		`msg="a limit of a stream is lowered: the server removes the oldest messages beyond it" stream=FH_HISTORY limit=bytes old=4294967296 new=10240 messages_before=20 messages=`,
		`msg="a limit of a stream is lowered: the server removes the oldest messages beyond it" stream=FH_HISTORY limit=age old=720h0m0s new=1h0m0s`,
		`msg="a limit of a stream is changed" stream=FH_LOGS limit=bytes old=536870912 new=1073741824`,
	} {
		if log.Count(line) != 1 {
			t.Errorf("the log does not have %s:\n%s", line, log.All())
		}
	}

	refused := (*bus.ProvisionError)(nil)
	if err := k.Configure(t.Context(), bus.StreamConfig{JournalBytes: 100}); !errors.As(err, &refused) || refused.Stream != bus.StreamJournal {
		t.Errorf("a journal that is too small: %v", err)
	}
	if got := len(bustest.Messages(t, nc, bus.StreamJournal)); got != 1 {
		t.Errorf("the journal has %d commits", got)
	}
}
