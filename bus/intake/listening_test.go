package intake_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/flowhost/flowhost/bus/intake"
	"github.com/flowhost/flowhost/bus/internal/bustest"
	"github.com/flowhost/flowhost/bus/natsd"
)

func noSwap() error { return nil }

func core(trigger, subject string) intake.Subscription {
	return intake.Subscription{Flow: "orders", Trigger: trigger, Subject: subject}
}

func wantHeard(t *testing.T, s *bustest.Starter, want ...string) {
	t.Helper()
	bustest.Eventually(t, fmt.Sprintf("%q are heard", want), func() bool { return len(bustest.Heard(s)) >= len(want) })
	if got := bustest.Heard(s); !slices.Equal(got, want) {
		t.Errorf("heard %q, want %q", got, want)
	}
}

func TestListenToOtherSubjects(t *testing.T) {
	t.Parallel()
	server := bustest.StartServer(t, natsd.Config{})
	s, nc := &bustest.Starter{}, bustest.Connect(t, server)
	in, _ := bustest.NewIntake(t, nc, s, []intake.Subscription{core("stays", "a"), core("moves", "b"), core("goes", "c")}, intake.Config{})
	other := bustest.Connect(t, server)
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
	bustest.Listen(t, in, func() error {
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
	server := bustest.StartServer(t, natsd.Config{})
	s, nc := &bustest.Starter{}, bustest.Connect(t, server)
	st := bustest.Stream(t, nc, "ORDERS", "orders.*")
	stays := []intake.Subscription{core("stays", "a"), {Flow: "orders", Trigger: "stream", Stream: "ORDERS", Durable: "mine"}}
	in, _ := bustest.NewIntake(t, nc, s, stays, intake.Config{})
	const messages = 200
	var talking sync.WaitGroup
	talking.Go(func() {
		other := bustest.Connect(t, server)
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
		bustest.Listen(t, in, noSwap, append(stays, core("new"+strconv.Itoa(i), "b"))...)
	}
	talking.Wait()
	s.Payloads(t, 2*messages)
	if got := bustest.Heard(s); len(got) != 2*messages || len(slices.Compact(got)) != 2*messages {
		t.Errorf("%d messages, %d of them different, were heard, and %d sent", len(s.Accepted()), len(slices.Compact(got)), 2*messages)
	}
	if info, err := st.Info(t.Context()); err != nil || info.State.Consumers != 1 {
		t.Errorf("the stream has %+v consumers, %v", info, err)
	}
}

// A durable consumer that another trigger takes over goes on where it was.
func TestListenKeepsTheConsumer(t *testing.T) {
	t.Parallel()
	nc := bustest.Connect(t, bustest.StartServer(t, natsd.Config{}))
	bustest.Stream(t, nc, "ORDERS", "orders.*")
	s := &bustest.Starter{}
	before := intake.Subscription{Flow: "orders", Trigger: "before", Stream: "ORDERS", Durable: "mine"}
	in, _ := bustest.NewIntake(t, nc, s, []intake.Subscription{before}, intake.Config{})
	bustest.Publish(t, nc, "orders.new", "1")
	wantHeard(t, s, "before 1")
	after := before
	after.Trigger = "after"
	bustest.Listen(t, in, func() error {
		bustest.Publish(t, nc, "orders.new", "2")
		return nil
	}, after)
	bustest.Publish(t, nc, "orders.new", "3")
	bustest.Eventually(t, "all are heard", func() bool { return len(bustest.Heard(s)) >= 3 })
	if got := bustest.Heard(s); !slices.Equal(got, []string{"after 2", "after 3", "before 1"}) {
		t.Errorf("heard %q", got)
	}
}

func TestListenFails(t *testing.T) {
	t.Parallel()
	server := bustest.StartServer(t, natsd.Config{})
	s, nc := &bustest.Starter{}, bustest.Connect(t, server)
	in, stop := bustest.NewIntake(t, nc, s, []intake.Subscription{core("old", "a")}, intake.Config{})
	errSwap := errors.New("no room")
	if err := in.Listen(t.Context(), []intake.Subscription{core("new", "b")}, func() error { return errSwap }); !errors.Is(err, errSwap) {
		t.Errorf("err = %v", err)
	}
	called := false
	if err := in.Listen(t.Context(), []intake.Subscription{core("new", "b..")}, func() error { called = true; return nil }); err == nil || called {
		t.Errorf("a subject that cannot be: %v, and the rest was changed: %t", err, called)
	}
	bustest.PublishCore(t, bustest.Connect(t, server), "a", "b")
	wantHeard(t, s, `old "a"`)
	stop()
	if err := in.Listen(t.Context(), nil, noSwap); err == nil {
		t.Error("an intake that has stopped listens")
	}
}

// The client user follows the subjects of the flows, over a restart of the server
// too, and keeps its connection meanwhile.
func TestAllowClient(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := bustest.StartServer(t, natsd.Config{Dir: dir, Listen: "127.0.0.1:0", ClientSubjects: []string{"a"}})
	heard := make(chan string, 10)
	ears := bustest.ConnectApp(t, server)
	if _, err := ears.Subscribe("*", func(m *nats.Msg) { heard <- m.Subject }); err != nil {
		t.Fatal(err)
	}
	refused, lost := make(chan struct{}, 10), make(chan struct{}, 10)
	enter := func() *nats.Conn {
		return bustest.Dial(t, bustest.ReadCredentials(t, dir, natsd.ClientContext),
			nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) { refused <- struct{}{} }),
			nats.ClosedHandler(func(*nats.Conn) { lost <- struct{}{} }))
	}
	client := enter()
	wantAllowed := func(want ...string) {
		t.Helper()
		bustest.PublishCore(t, client, "a", "b")
		for range 2 - len(want) {
			<-refused
		}
		for _, subject := range want {
			select {
			case got := <-heard:
				if got != subject {
					t.Errorf("heard %s, want %s", got, subject)
				}
			case <-time.After(bustest.Patience):
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
	bustest.Eventually(t, "the listener is back", func() bool { return ears.FlushTimeout(time.Second) == nil })
	wantAllowed("a", "b")
}
