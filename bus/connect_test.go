package bus_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/internal/bustest"
)

func TestConnectWaits(t *testing.T) {
	t.Parallel()
	e := bustest.NewExternal(t)
	var log bustest.LogLines
	connected := make(chan error, 1)
	go func() {
		nc, err := bus.Connect(t.Context(), bus.ConnectConfig{URL: "nats://" + e.Address(), Log: log.Logger()})
		if err == nil {
			nc.Close()
		}
		connected <- err
	}()
	bustest.Eventually(t, "the wait is logged", func() bool { return log.Count("waiting to connect") == 1 })
	e.Start()
	if err := <-connected; err != nil {
		t.Fatal(err)
	}
	if log.Count("waiting to connect") != 1 || log.Count("could connect to NATS again") != 1 {
		t.Error("the log does not have one line for each state")
	}
}

func TestConnectEndsWithContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := bus.Connect(ctx, bus.ConnectConfig{URL: "nats://" + bustest.NewExternal(t).Address()})
	if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, nats.ErrNoServers) {
		t.Errorf("Connect = %v, want the context's end and why it waited", err)
	}
}

func TestConnectRefusedAtOnce(t *testing.T) {
	t.Parallel()
	e := bustest.NewExternal(t)
	e.Opts.Username, e.Opts.Password = "a", "b"
	e.Start()
	for name, cfg := range map[string]bus.ConnectConfig{
		"no credentials":      {URL: "nats://" + e.Address()},
		"missing credentials": {URL: "nats://" + e.Address(), Creds: "/nowhere/user.creds"},
		"bad address":         {URL: "nats://%zz"},
	} {
		if nc, err := bus.Connect(t.Context(), cfg); err == nil {
			nc.Close()
			t.Errorf("%s: Connect succeeded", name)
		}
	}
}
