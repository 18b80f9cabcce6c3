package journal_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/internal/bustest"
	"github.com/flowhost/flowhost/bus/journal"
)

const quick = 20 * time.Millisecond

// anOwner is the configuration of a host that renews its lease often. Expire is out of
// reach unless the test is about it.
func anOwner(name string, log *bustest.LogLines) journal.LeaseConfig {
	return journal.LeaseConfig{
		Owner: journal.Owner{Host: name, Process: 7, Since: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), ID: name},
		Renew: quick, Expire: time.Hour, Log: log.Logger(),
	}
}

func leaseServer(t *testing.T) (start func(), stop func(), connect func() *nats.Conn) {
	t.Helper()
	e := bustest.NewExternal(t)
	e.Start()
	return e.Start, e.Stop, func() *nats.Conn { return e.Connect(new(bustest.LogLines), e.Address()) }
}

func acquire(t *testing.T, nc *nats.Conn, cfg journal.LeaseConfig) *journal.Lease {
	t.Helper()
	l, err := journal.AcquireLease(t.Context(), nc, 0, bus.StreamConfig{}, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// renewing renews a lease until stop, which gives the error of Run.
func renewing(t *testing.T, l *journal.Lease) (stop func() error, ended <-chan error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	result, seen := make(chan error, 1), make(chan error, 1)
	go func() {
		err := l.Run(ctx)
		result <- err
		seen <- err
	}()
	t.Cleanup(cancel)
	return func() error { cancel(); return <-result }, seen
}

// A second host is refused as soon as the owner has renewed, and told who that is.
func TestLeaseThatIsHeld(t *testing.T) {
	t.Parallel()
	_, _, connect := leaseServer(t)
	nc := connect()
	l := acquire(t, nc, anOwner("first", new(bustest.LogLines)))
	stop, _ := renewing(t, l)
	var log bustest.LogLines
	_, err := journal.AcquireLease(t.Context(), connect(), 0, bus.StreamConfig{}, anOwner("second", &log))
	held := (*journal.HeldError)(nil)
	if !errors.As(err, &held) || held.Owner.Host != "first" || !strings.Contains(err.Error(), "flowhost on first, process 7, since 2026-01-02T03:04:05Z") {
		t.Fatalf("%v", err)
	}
	if log.Count("the journal has an owner") != 1 {
		t.Errorf("the log has %s", log.All())
	}
	if err := stop(); !errors.Is(err, context.Canceled) {
		t.Errorf("Run = %v", err)
	}

	// Another shard is another lease. One that is released needs no waiting.
	if _, err := journal.AcquireLease(t.Context(), connect(), 1, bus.StreamConfig{}, anOwner("third", &log)); err != nil {
		t.Error(err)
	}
	if err := l.Release(t.Context()); err != nil {
		t.Error(err)
	}
	acquire(t, nc, anOwner("second", &log))
}

// The lease of an owner that is gone expires; should it come back, it learns of that.
func TestLeaseThatExpires(t *testing.T) {
	t.Parallel()
	_, _, connect := leaseServer(t)
	first := acquire(t, connect(), anOwner("first", new(bustest.LogLines)))
	short := anOwner("second", new(bustest.LogLines))
	short.Expire = 2 * quick
	began := time.Now()
	acquire(t, connect(), short)
	if took := time.Since(began); took < short.Expire {
		t.Errorf("it was taken after %s", took)
	}
	_, ended := renewing(t, first)
	select {
	case err := <-ended:
		if lost := (*journal.LostError)(nil); !errors.As(err, &lost) || lost.Owner.Host != "second" {
			t.Errorf("Run = %v", err)
		}
	case <-time.After(bustest.Patience):
		t.Fatal("the first owner continues")
	}
	if err := first.Release(t.Context()); err == nil {
		t.Error("a lease that is lost is released")
	}
}

// Of several hosts that wait for the same lease, one gets it.
func TestLeaseIsTakenOnce(t *testing.T) {
	t.Parallel()
	_, _, connect := leaseServer(t)
	acquire(t, connect(), anOwner("gone", new(bustest.LogLines)))
	const hosts = 4
	results := make(chan error, hosts)
	var lost atomic.Int32 // of those who had it, on a machine that was too busy to renew it
	for _, name := range []string{"a", "b", "c", "d"} {
		nc := connect()
		go func() {
			cfg := anOwner(name, new(bustest.LogLines))
			cfg.Expire = 2 * quick
			l, err := journal.AcquireLease(t.Context(), nc, 0, bus.StreamConfig{}, cfg)
			results <- err
			if err == nil && errors.As(l.Run(t.Context()), new(*journal.LostError)) {
				lost.Add(1)
			}
		}()
	}
	got := 0
	for range hosts {
		err := <-results
		if held := (*journal.HeldError)(nil); err == nil {
			got++
		} else if !errors.As(err, &held) {
			t.Error(err)
		}
	}
	bustest.Eventually(t, "one host has the lease", func() bool { return got-int(lost.Load()) == 1 })
}

// The owner keeps the lease while the server is away, and when the stream is lost.
func TestLeaseOutlivesTheServer(t *testing.T) {
	t.Parallel()
	start, stop, connect := leaseServer(t)
	nc := connect()
	var log bustest.LogLines
	l := acquire(t, nc, anOwner("first", &log))
	done, _ := renewing(t, l)
	stop()
	bustest.Eventually(t, "the failure is logged", func() bool { return log.Count("is not renewed") == 1 })
	start()
	other := connect()
	if err := bustest.JetStream(t, other).DeleteStream(t.Context(), bus.StreamOwner); err != nil {
		t.Fatal(err)
	}
	bustest.Eventually(t, "the stream is there again", func() bool {
		stream, err := bustest.JetStream(t, other).Stream(t.Context(), bus.StreamOwner)
		return err == nil && stream.CachedInfo().State.LastSeq > 1
	})
	_, err := journal.AcquireLease(t.Context(), other, 0, bus.StreamConfig{}, anOwner("second", new(bustest.LogLines)))
	if held := (*journal.HeldError)(nil); !errors.As(err, &held) {
		t.Errorf("a second host: %v", err)
	}
	if err := done(); !errors.Is(err, context.Canceled) {
		t.Errorf("Run = %v", err)
	}
}

// A lease is released although the owner does not know of its last renewal: it was stopped
// before the acknowledgement came.
func TestLeaseIsReleasedAfterAnUnknownRenewal(t *testing.T) {
	t.Parallel()
	_, _, connect := leaseServer(t)
	nc := connect()
	l := acquire(t, nc, anOwner("first", new(bustest.LogLines)))
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	renewal, err := json.Marshal(anOwner("first", nil).Owner)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(t.Context(), bus.OwnerSubject(0), renewal); err != nil {
		t.Fatal(err)
	}
	if err := l.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	var log bustest.LogLines
	acquire(t, nc, anOwner("second", &log))
	if log.Count("the journal has an owner") != 0 {
		t.Errorf("the log has %s", log.All())
	}
}
