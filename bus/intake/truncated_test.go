package intake_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/intake"
	"github.com/flowhost/flowhost/bus/internal/bustest"
	"github.com/flowhost/flowhost/bus/natsd"
	"github.com/flowhost/flowhost/run"
)

// Of FH_TRIGGERS a power failure can take more than of the journal, and then the
// server gives numbers again that are decided: to messages that come before the
// intake does, to those that come later, and in part to both. All of them make
// their run, and what is left of the decided ones makes none again.
func TestTriggersAfterLostEnd(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ kept, before, after int }{
		"nothing before the intake":   {3, 0, 9},
		"less than was lost":          {3, 2, 2},
		"as much as was lost":         {3, 4, 2},
		"more than was lost":          {3, 8, 2},
		"nothing kept":                {0, 2, 2},
		"nothing kept and more":       {0, 9, 2},
		"all kept":                    {7, 2, 2},
		"less, and nothing afterward": {3, 2, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			site := bustest.NewSite(t)
			nc := bustest.Connect(t, site.Server)
			bustest.Publish(t, nc, "fh.v1.trigger.orders", numbers(1, c.kept)...)
			lose := site.Keep("ENGINE", bus.StreamTriggers)
			s := &bustest.Starter{}
			nc = bustest.Connect(t, site.Server)
			stop := bustest.RunIntake(t, nc, s, nil, intake.Config{})
			bustest.Publish(t, nc, "fh.v1.trigger.orders", numbers(c.kept+1, 7)...)
			s.Payloads(t, 7)
			stop()
			if c.kept < 7 {
				lose()
			}

			nc = bustest.Connect(t, site.Server)
			bustest.Publish(t, nc, "fh.v1.trigger.orders", numbers(8, 7+c.before)...)
			last := 7 + c.before + c.after
			for _, span := range [][2]int{{8 + c.before, last - 1}, {last, last}} { // the last one after one more start
				stop = bustest.RunIntake(t, nc, s, nil, intake.Config{})
				if span[0] <= span[1] && c.after > 0 {
					bustest.Publish(t, nc, "fh.v1.trigger.orders", numbers(span[0], span[1])...)
				}
				s.Payloads(t, max(span[1], 7+c.before))
				stop()
			}
			if got := s.Payloads(t, last); !slices.Equal(got, numbers(1, last)) {
				t.Errorf("payloads = %q, want those up to %d", got, last)
			}
		})
	}
}

// The end can be lost again before the numbers are where they were.
func TestTriggersAfterLostEndTwice(t *testing.T) {
	t.Parallel()
	site := bustest.NewSite(t)
	s := &bustest.Starter{}
	next := 1
	take := func(n int) {
		t.Helper()
		nc := bustest.Connect(t, site.Server)
		bustest.Publish(t, nc, "fh.v1.trigger.orders", numbers(next, next+n-1)...)
		next += n
		stop := bustest.RunIntake(t, nc, s, nil, intake.Config{})
		s.Payloads(t, next-1)
		stop()
	}
	take(2)
	lose := site.Keep("ENGINE", bus.StreamTriggers)
	for _, n := range []int{9, 4, 6, 1, 1, 30} {
		take(n)
		lose()
	}
	take(3)
	if got := s.Payloads(t, next-1); !slices.Equal(got, numbers(1, next-1)) {
		t.Errorf("payloads = %q, want those up to %d", got, next-1)
	}
}

// The streams of others can lose their end, too, with the state of their consumers
// or without it, or be made anew. Nothing of what comes then is taken for decided.
func TestForeignStreamAfterLostEnd(t *testing.T) {
	t.Parallel()
	const anew = "recreated"
	triggers := []intake.Subscription{{Flow: "orders", Trigger: "new", Stream: "ORDERS"}}
	for _, what := range []string{"ORDERS", "ORDERS/msgs", anew} {
		for _, before := range []int{0, 2, 4, 9} {
			t.Run(fmt.Sprint(what, " ", before), func(t *testing.T) {
				t.Parallel()
				site := bustest.NewSite(t)
				nc := bustest.Connect(t, site.Server)
				bustest.Stream(t, nc, "ORDERS", "orders.*")
				s := &bustest.Starter{}
				take := func(from, to int) {
					t.Helper()
					stop := bustest.RunIntake(t, nc, s, triggers, intake.Config{})
					bustest.Publish(t, nc, "orders.new", numbers(from, to)...)
					s.Payloads(t, to)
					stop()
				}
				take(1, 3)
				lose := func() {
					if err := bustest.JetStream(t, nc).DeleteStream(t.Context(), "ORDERS"); err != nil {
						t.Fatal(err)
					}
					bustest.Stream(t, nc, "ORDERS", "orders.*")
				}
				if what != anew {
					lose = site.Keep("ENGINE", what)
					nc = bustest.Connect(t, site.Server)
				}
				take(4, 7)
				lose()
				nc = bustest.Connect(t, site.Server)
				bustest.Publish(t, nc, "orders.new", numbers(8, 7+before)...)
				take(8+before, 9+before)
				if got := s.Payloads(t, 9+before); !slices.Equal(got, numbers(1, 9+before)) {
					t.Errorf("payloads = %q", got)
				}
			})
		}
	}
}

// A clock that was set back makes no new message an old one.
func TestTriggersAfterLostEndAndClock(t *testing.T) {
	t.Parallel()
	nc := bustest.Connect(t, bustest.StartServer(t, natsd.Config{}))
	s := &bustest.Starter{Watermarks: map[string]run.Position{
		bus.SourceTriggers: {Source: bus.SourceTriggers, Seq: 40, At: time.Now().Add(time.Hour)},
	}}
	var log bustest.LogLines
	stop := bustest.RunIntake(t, nc, s, nil, intake.Config{Log: log.Logger()})
	st, err := bustest.JetStream(t, nc).Stream(t.Context(), bus.StreamTriggers)
	if err != nil {
		t.Fatal(err)
	}
	bustest.Eventually(t, "the stream is read", func() bool {
		info, err := st.Info(t.Context())
		return err == nil && info.State.Consumers == 1
	})
	if n := log.Count("has lost its end"); n != 1 {
		t.Errorf("the log has %d lines about it", n)
	}
	bustest.Publish(t, nc, "fh.v1.trigger.orders", numbers(1, 3)...)
	s.Payloads(t, 3)
	stop()
	bustest.Publish(t, nc, "fh.v1.trigger.orders", numbers(4, 5)...)
	bustest.RunIntake(t, nc, s, nil, intake.Config{})
	if got := s.Payloads(t, 5); !slices.Equal(got, numbers(1, 5)) {
		t.Errorf("payloads = %q", got)
	}
}

// A message that cannot make a run is kept, though another one with its number was
// kept a moment ago.
func TestDeadLettersAfterLostEnd(t *testing.T) {
	t.Parallel()
	site := bustest.NewSite(t)
	lose := site.Keep("ENGINE", bus.StreamTriggers)
	s := &bustest.Starter{}
	for i := range 2 {
		nc := bustest.Connect(t, site.Server)
		stop := bustest.RunIntake(t, nc, s, nil, intake.Config{})
		bustest.Publish(t, nc, "fh.v1.trigger.unknown", fmt.Sprint(i))
		bustest.Eventually(t, "the message is kept", func() bool { return len(bustest.Messages(t, nc, bus.StreamDeadLetter)) == i+1 })
		stop()
		lose()
	}
}

// A publisher that repeats messages with their ids after they were lost has their
// runs already.
func TestRepeatedTriggersAfterLostEnd(t *testing.T) {
	t.Parallel()
	site := bustest.NewSite(t)
	lose := site.Keep("ENGINE", bus.StreamTriggers)
	s := &bustest.Starter{}
	for range 2 {
		nc := bustest.Connect(t, site.Server)
		js := bustest.JetStream(t, nc)
		for _, id := range []string{"a", "b"} {
			if _, err := js.PublishMsg(t.Context(), &nats.Msg{Subject: "fh.v1.trigger.orders", Header: nats.Header{"Nats-Msg-Id": {id}}, Data: []byte("1")}); err != nil {
				t.Fatal(err)
			}
		}
		stop := bustest.RunIntake(t, nc, s, nil, intake.Config{})
		bustest.Eventually(t, "both are decided", func() bool {
			mark, err := s.Watermark(t.Context(), bus.SourceTriggers)
			stored := bustest.Messages(t, nc, bus.StreamTriggers)
			return err == nil && len(stored) == 2 && mark == run.Position{Source: bus.SourceTriggers, Seq: 2, At: stored[1].Time.UTC()}
		})
		stop()
		lose()
	}
	if n := len(s.Accepted()); n != 2 {
		t.Errorf("%d runs, want 2", n)
	}
}
