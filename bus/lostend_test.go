package bus_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/flowhost/flowhost/bus"
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
			site := newSite(t)
			nc := connect(t, site.server)
			publish(t, nc, "fh.v1.trigger.orders", numbers(1, c.kept)...)
			lose := site.keep("ENGINE", bus.StreamTriggers)
			s := &starter{}
			nc = connect(t, site.server)
			stop := runIntake(t, nc, s, nil, bus.IntakeConfig{})
			publish(t, nc, "fh.v1.trigger.orders", numbers(c.kept+1, 7)...)
			s.payloads(t, 7)
			stop()
			if c.kept < 7 {
				lose()
			}

			nc = connect(t, site.server)
			publish(t, nc, "fh.v1.trigger.orders", numbers(8, 7+c.before)...)
			last := 7 + c.before + c.after
			for _, span := range [][2]int{{8 + c.before, last - 1}, {last, last}} { // the last one after one more start
				stop = runIntake(t, nc, s, nil, bus.IntakeConfig{})
				if span[0] <= span[1] && c.after > 0 {
					publish(t, nc, "fh.v1.trigger.orders", numbers(span[0], span[1])...)
				}
				s.payloads(t, max(span[1], 7+c.before))
				stop()
			}
			if got := s.payloads(t, last); !slices.Equal(got, numbers(1, last)) {
				t.Errorf("payloads = %q, want those up to %d", got, last)
			}
		})
	}
}

// The end can be lost again before the numbers are where they were.
func TestTriggersAfterLostEndTwice(t *testing.T) {
	t.Parallel()
	site := newSite(t)
	s := &starter{}
	next := 1
	take := func(n int) {
		t.Helper()
		nc := connect(t, site.server)
		publish(t, nc, "fh.v1.trigger.orders", numbers(next, next+n-1)...)
		next += n
		stop := runIntake(t, nc, s, nil, bus.IntakeConfig{})
		s.payloads(t, next-1)
		stop()
	}
	take(2)
	lose := site.keep("ENGINE", bus.StreamTriggers)
	for _, n := range []int{9, 4, 6, 1, 1, 30} {
		take(n)
		lose()
	}
	take(3)
	if got := s.payloads(t, next-1); !slices.Equal(got, numbers(1, next-1)) {
		t.Errorf("payloads = %q, want those up to %d", got, next-1)
	}
}

// The streams of others can lose their end, too, with the state of their consumers
// or without it, or be made anew. Nothing of what comes then is taken for decided.
func TestForeignStreamAfterLostEnd(t *testing.T) {
	t.Parallel()
	const anew = "made anew"
	triggers := []bus.Subscription{{Flow: "orders", Trigger: "new", Stream: "ORDERS"}}
	for _, what := range []string{"ORDERS", "ORDERS/msgs", anew} {
		for _, before := range []int{0, 2, 4, 9} {
			t.Run(fmt.Sprint(what, " ", before), func(t *testing.T) {
				t.Parallel()
				site := newSite(t)
				nc := connect(t, site.server)
				stream(t, nc, "ORDERS", "orders.*")
				s := &starter{}
				take := func(from, to int) {
					t.Helper()
					stop := runIntake(t, nc, s, triggers, bus.IntakeConfig{})
					publish(t, nc, "orders.new", numbers(from, to)...)
					s.payloads(t, to)
					stop()
				}
				take(1, 3)
				lose := func() {
					if err := jetStream(t, nc).DeleteStream(t.Context(), "ORDERS"); err != nil {
						t.Fatal(err)
					}
					stream(t, nc, "ORDERS", "orders.*")
				}
				if what != anew {
					lose = site.keep("ENGINE", what)
					nc = connect(t, site.server)
				}
				take(4, 7)
				lose()
				nc = connect(t, site.server)
				publish(t, nc, "orders.new", numbers(8, 7+before)...)
				take(8+before, 9+before)
				if got := s.payloads(t, 9+before); !slices.Equal(got, numbers(1, 9+before)) {
					t.Errorf("payloads = %q", got)
				}
			})
		}
	}
}

// A clock that was set back makes no new message an old one.
func TestTriggersAfterLostEndAndClock(t *testing.T) {
	t.Parallel()
	nc := connect(t, startServer(t, bus.ServerConfig{}))
	s := &starter{watermarks: map[string]run.Position{
		bus.SourceTriggers: {Source: bus.SourceTriggers, Seq: 40, At: time.Now().Add(time.Hour)},
	}}
	var log logLines
	stop := runIntake(t, nc, s, nil, bus.IntakeConfig{Log: log.logger()})
	st, err := jetStream(t, nc).Stream(t.Context(), bus.StreamTriggers)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the stream is read", func() bool {
		info, err := st.Info(t.Context())
		return err == nil && info.State.Consumers == 1
	})
	if n := log.count("has lost its end"); n != 1 {
		t.Errorf("the log has %d lines about it", n)
	}
	publish(t, nc, "fh.v1.trigger.orders", numbers(1, 3)...)
	s.payloads(t, 3)
	stop()
	publish(t, nc, "fh.v1.trigger.orders", numbers(4, 5)...)
	runIntake(t, nc, s, nil, bus.IntakeConfig{})
	if got := s.payloads(t, 5); !slices.Equal(got, numbers(1, 5)) {
		t.Errorf("payloads = %q", got)
	}
}

// A message that cannot make a run is kept, though another one with its number was
// kept a moment ago.
func TestDeadLettersAfterLostEnd(t *testing.T) {
	t.Parallel()
	site := newSite(t)
	lose := site.keep("ENGINE", bus.StreamTriggers)
	s := &starter{}
	for i := range 2 {
		nc := connect(t, site.server)
		stop := runIntake(t, nc, s, nil, bus.IntakeConfig{})
		publish(t, nc, "fh.v1.trigger.unknown", fmt.Sprint(i))
		eventually(t, "the message is kept", func() bool { return len(messages(t, nc, bus.StreamDeadLetter)) == i+1 })
		stop()
		lose()
	}
}

// A publisher that repeats messages with their ids after they were lost has their
// runs already.
func TestRepeatedTriggersAfterLostEnd(t *testing.T) {
	t.Parallel()
	site := newSite(t)
	lose := site.keep("ENGINE", bus.StreamTriggers)
	s := &starter{}
	for range 2 {
		nc := connect(t, site.server)
		js := jetStream(t, nc)
		for _, id := range []string{"a", "b"} {
			if _, err := js.PublishMsg(t.Context(), &nats.Msg{Subject: "fh.v1.trigger.orders", Header: nats.Header{"Nats-Msg-Id": {id}}, Data: []byte("1")}); err != nil {
				t.Fatal(err)
			}
		}
		stop := runIntake(t, nc, s, nil, bus.IntakeConfig{})
		eventually(t, "both are decided", func() bool {
			mark, err := s.Watermark(t.Context(), bus.SourceTriggers)
			stored := messages(t, nc, bus.StreamTriggers)
			return err == nil && len(stored) == 2 && mark == run.Position{Source: bus.SourceTriggers, Seq: 2, At: stored[1].Time.UTC()}
		})
		stop()
		lose()
	}
	if n := len(s.accepted()); n != 2 {
		t.Errorf("%d runs, want 2", n)
	}
}
