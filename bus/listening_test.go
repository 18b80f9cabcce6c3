package bus_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/flowhost/flowhost/bus"
)

func noSwap() error { return nil }

func core(trigger, subject string) bus.Subscription {
	return bus.Subscription{Flow: "orders", Trigger: trigger, Subject: subject}
}

func listen(t *testing.T, in *bus.Intake, swap func() error, triggers ...bus.Subscription) {
	t.Helper()
	if err := in.Listen(t.Context(), triggers, swap); err != nil {
		t.Fatal(err)
	}
}

// heard gives the accepted payloads with the triggers that took them, sorted.
func heard(s *starter) []string {
	var all []string
	for _, r := range s.accepted() {
		all = append(all, r.Trigger.Name+" "+string(r.Trigger.Payload))
	}
	slices.Sort(all)
	return all
}

func wantHeard(t *testing.T, s *starter, want ...string) {
	t.Helper()
	eventually(t, fmt.Sprintf("%q are heard", want), func() bool { return len(heard(s)) >= len(want) })
	if got := heard(s); !slices.Equal(got, want) {
		t.Errorf("heard %q, want %q", got, want)
	}
}

func TestListenToOtherSubjects(t *testing.T) {
	t.Parallel()
	server := startServer(t, bus.ServerConfig{})
	s, nc := &starter{}, connect(t, server)
	in, _ := newIntake(t, nc, s, []bus.Subscription{core("stays", "a"), core("moves", "b"), core("goes", "c")}, bus.IntakeConfig{})
	other := connect(t, server)
	say := func(text string) {
		for _, subject := range []string{"a", "b", "c", "d", "e"} {
			if err := other.Publish(subject, []byte(strconv.Quote(subject+text))); err != nil {
				t.Fatal(err)
			}
		}
		if err := other.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	say("1")
	wantHeard(t, s, `goes "c1"`, `moves "b1"`, `stays "a1"`)
	swapped := 0
	listen(t, in, func() error {
		swapped++
		say("2")
		return nil
	}, core("stays", "a"), core("moves", "d"), core("comes", "e"))
	say("3")
	wantHeard(t, s, `comes "e3"`, `goes "c1"`, `moves "b1"`, `moves "d3"`, `stays "a1"`, `stays "a2"`, `stays "a3"`)
	if swapped != 1 {
		t.Errorf("swap was called %d times", swapped)
	}
}

// What triggers that stay are told during changes is heard once.
func TestListenLosesNothing(t *testing.T) {
	t.Parallel()
	server := startServer(t, bus.ServerConfig{})
	s, nc := &starter{}, connect(t, server)
	st := stream(t, nc, "ORDERS", "orders.*")
	stays := []bus.Subscription{core("stays", "a"), {Flow: "orders", Trigger: "stream", Stream: "ORDERS", Durable: "mine"}}
	in, _ := newIntake(t, nc, s, stays, bus.IntakeConfig{})
	const messages = 200
	var talking sync.WaitGroup
	talking.Go(func() {
		other := connect(t, server)
		for i := range messages {
			if err := errors.Join(other.Publish("a", []byte(strconv.Itoa(i))), other.Publish("orders.new", []byte(strconv.Itoa(i)))); err != nil {
				t.Error(err)
			}
		}
		if err := other.Flush(); err != nil {
			t.Error(err)
		}
	})
	for i := range 20 {
		listen(t, in, noSwap, append(stays, core("new"+strconv.Itoa(i), "b"))...)
	}
	talking.Wait()
	s.payloads(t, 2*messages)
	if got := heard(s); len(got) != 2*messages || len(slices.Compact(got)) != 2*messages {
		t.Errorf("%d messages, %d of them different, were heard, and %d sent", len(s.accepted()), len(slices.Compact(got)), 2*messages)
	}
	if info, err := st.Info(t.Context()); err != nil || info.State.Consumers != 1 {
		t.Errorf("the stream has %+v consumers, %v", info, err)
	}
}

// A durable consumer that another trigger takes over goes on where it was.
func TestListenKeepsTheConsumer(t *testing.T) {
	t.Parallel()
	nc := connect(t, startServer(t, bus.ServerConfig{}))
	stream(t, nc, "ORDERS", "orders.*")
	s := &starter{}
	before := bus.Subscription{Flow: "orders", Trigger: "before", Stream: "ORDERS", Durable: "mine"}
	in, _ := newIntake(t, nc, s, []bus.Subscription{before}, bus.IntakeConfig{})
	publish(t, nc, "orders.new", "1")
	wantHeard(t, s, "before 1")
	after := before
	after.Trigger = "after"
	listen(t, in, func() error {
		publish(t, nc, "orders.new", "2")
		return nil
	}, after)
	publish(t, nc, "orders.new", "3")
	eventually(t, "all are heard", func() bool { return len(heard(s)) >= 3 })
	if got := heard(s); !slices.Equal(got, []string{"after 2", "after 3", "before 1"}) {
		t.Errorf("heard %q", got)
	}
}

func TestListenFails(t *testing.T) {
	t.Parallel()
	server := startServer(t, bus.ServerConfig{})
	s, nc := &starter{}, connect(t, server)
	in, stop := newIntake(t, nc, s, []bus.Subscription{core("old", "a")}, bus.IntakeConfig{})
	errSwap := errors.New("no room")
	if err := in.Listen(t.Context(), []bus.Subscription{core("new", "b")}, func() error { return errSwap }); !errors.Is(err, errSwap) {
		t.Errorf("err = %v", err)
	}
	called := false
	if err := in.Listen(t.Context(), []bus.Subscription{core("new", "b..")}, func() error { called = true; return nil }); err == nil || called {
		t.Errorf("a subject that cannot be: %v, and the rest was changed: %t", err, called)
	}
	publishCore(t, connect(t, server), "a", "b")
	wantHeard(t, s, `old "a"`)
	stop()
	if err := in.Listen(t.Context(), nil, noSwap); err == nil {
		t.Error("an intake that has stopped listens")
	}
}

func publishCore(t *testing.T, nc *nats.Conn, subjects ...string) {
	t.Helper()
	for _, subject := range subjects {
		if err := nc.Publish(subject, []byte(strconv.Quote(subject))); err != nil {
			t.Fatal(err)
		}
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
}

// The client user follows the subjects of the flows, over a restart of the server
// too, and keeps its connection meanwhile.
func TestAllowClient(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := startServer(t, bus.ServerConfig{Dir: dir, Listen: "127.0.0.1:0", ClientSubjects: []string{"a"}})
	heard := make(chan string, 10)
	ears := connectApp(t, server)
	if _, err := ears.Subscribe("*", func(m *nats.Msg) { heard <- m.Subject }); err != nil {
		t.Fatal(err)
	}
	refused, lost := make(chan struct{}, 10), make(chan struct{}, 10)
	enter := func() *nats.Conn {
		return dial(t, readCredentials(t, dir, bus.ClientContext),
			nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) { refused <- struct{}{} }),
			nats.ClosedHandler(func(*nats.Conn) { lost <- struct{}{} }))
	}
	client := enter()
	wantAllowed := func(want ...string) {
		t.Helper()
		publishCore(t, client, "a", "b")
		for range 2 - len(want) {
			<-refused
		}
		for _, subject := range want {
			select {
			case got := <-heard:
				if got != subject {
					t.Errorf("heard %s, want %s", got, subject)
				}
			case <-time.After(patience):
				t.Fatalf("%s is not heard", subject)
			}
		}
	}
	wantAllowed("a")
	if err := server.AllowClient([]string{"b"}); err != nil {
		t.Fatal(err)
	}
	wantAllowed("b")
	if err := server.AllowClient([]string{"a", "b"}); err != nil {
		t.Fatal(err)
	}
	wantAllowed("a", "b")
	select {
	case <-lost:
		t.Error("the client was disconnected")
	default:
	}
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-lost
	client = enter()
	eventually(t, "the listener is back", func() bool { return ears.FlushTimeout(time.Second) == nil })
	wantAllowed("a", "b")
}
