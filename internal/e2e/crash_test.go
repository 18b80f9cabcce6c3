package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// crashFlows holds an attempt on request; its edition shows in the run's output.
const crashFlows = `
flow "patient" {
  task "hold" {
    plugin   = "./unruly.wasm"
    function = "hold"
    input    = { hold = trigger.payload.hold }
  }

  task "after" {
    plugin   = "./unruly.wasm"
    function = "echo"
    input    = { edition = "EDITION", held = task.hold.output.attempt }
  }

  output "edition" {
    value = task.after.output.edition
  }
}
`

func edition(name string) string { return strings.ReplaceAll(crashFlows, "EDITION", name) }

// ledger is what a host has acknowledged.
type ledger struct {
	mu       sync.Mutex
	runs     []string // ids
	messages []string // markers of messages in the stream of triggers

	// Of the present round: as many entries in all as it continues to, and a channel
	// that is closed then.
	runsGoal, messagesGoal int
	reached                chan struct{}
}

// round gives a channel that is closed when there are so many more entries.
func (l *ledger) round(runs, messages int) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.runsGoal, l.messagesGoal = len(l.runs)+runs, len(l.messages)+messages
	l.reached = make(chan struct{})
	return l.reached
}

func (l *ledger) enter(list *[]string, entry string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	*list = append(*list, entry)
	if l.reached != nil && len(l.runs) >= l.runsGoal && len(l.messages) >= l.messagesGoal {
		close(l.reached)
		l.reached = nil
	}
}

// load asks for runs in both ways, one after the other each, until the host does
// not answer any more. The function that it gives waits for that end.
func (l *ledger) load(c *client, round int) (wait func()) {
	var loading sync.WaitGroup
	loading.Go(func() {
		for {
			answer, err := c.nc.Request("fh.v1.api.run.patient", []byte(`{"hold":false}`), patience)
			if err != nil {
				return
			}
			var accepted struct{ Run string }
			if err := json.Unmarshal(answer.Data, &accepted); err != nil || accepted.Run == "" {
				c.t.Errorf("the answer is %s", answer.Data)
				return
			}
			l.enter(&l.runs, accepted.Run)
		}
	})
	loading.Go(func() {
		for n := 0; ; n++ {
			marker := fmt.Sprintf("%d-%d", round, n)
			msg := &nats.Msg{Subject: "fh.v1.trigger.patient", Data: []byte(`{"hold":false,"marker":"` + marker + `"}`)}
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			_, err := c.js.PublishMsg(ctx, msg, jetstream.WithMsgID(marker))
			cancel()
			if err != nil {
				return
			}
			l.enter(&l.messages, marker)
		}
	})
	return loading.Wait
}

// TestKill kills the host again and again while it is asked for runs and while an
// attempt is under way. Afterwards every run that was acknowledged has ended,
// once, with the flow that it was accepted with.
func TestKill(t *testing.T) {
	t.Parallel()
	const rounds, enough = 3, 25
	folder := writeFlows(t, edition("0"))
	h := serve(t, folder, "--nats-listen", "127.0.0.1:0")
	book := &ledger{}
	held := map[string]string{} // edition by run
	for round := range rounds {
		c := h.client()
		follow := c.subscribe("fh.v1.run.patient.>")
		for id := range held { // another kill would lose its attempt again
			c.follow(`{"run":"` + id + `"}`).finished(id)
		}
		id := c.submit("fh.v1.api.run.patient", `{"hold":true}`)
		held[id] = fmt.Sprint(round)
		follow.attempt("hold", 1)
		reached := book.round(enough, enough)
		wait := book.load(c, round)
		within(t, "the load before kill "+fmt.Sprint(round), reached)
		h.kill()
		wait()
		rewrite(t, folder, edition(fmt.Sprint(round+1)))
		h.restart()
	}
	c := h.client()
	last := c.submit("fh.v1.api.run.patient", `{"hold":false}`)
	ends := collect(c, book, slices.AppendSeq([]string{last}, maps.Keys(held)))

	for id, want := range held {
		r := ends[id]
		if hold := r.task(t, "hold"); hold.Attempts != 2 || hold.Outcome != "succeeded" {
			t.Errorf("run %s, held: %+v, want success at the second attempt", id, hold)
		}
		if got := string(r.Output); got != `{"edition":"`+want+`"}` {
			t.Errorf("run %s was accepted with edition %s and gives %s", id, want, got)
		}
	}
	if got := string(ends[last].Output); got != fmt.Sprintf(`{"edition":"%d"}`, rounds) {
		t.Errorf("a new run gives %s", got)
	}
	t.Logf("%d kills, %d runs asked for, %d messages, %d runs in all", rounds, len(book.runs), len(book.messages), len(ends))
}

// collect reads all events until no run is open and those of the ledger, and the
// given ones, have ended. Each run must have ended once and well, and each
// message must have made one run.
func collect(c *client, book *ledger, more []string) map[string]*record {
	c.t.Helper()
	missing, open := map[string]bool{}, map[string]bool{}
	for _, id := range slices.Concat(book.runs, more) {
		missing[id] = true
	}
	for _, marker := range book.messages {
		missing[marker] = true
	}
	ends, ids, markers := map[string]*record{}, map[string]bool{}, map[string]string{}
	c.follow(`{}`).until("the end of all runs", func(e event) bool {
		if ids[e.ID] {
			c.t.Errorf("event %s is there twice", e.ID)
		}
		ids[e.ID], open[e.Run] = true, true
		if e.Kind != "finished" {
			return false
		}
		delete(open, e.Run)
		delete(missing, e.Run)
		if ends[e.Run] != nil {
			c.t.Errorf("run %s has ended twice", e.Run)
		}
		ends[e.Run] = e.Record
		if e.State != "succeeded" || e.Record == nil {
			c.t.Fatalf("run %s: %+v", e.Run, e)
		}
		if marker := markerOf(c.t, e.Record); marker != "" {
			delete(missing, marker)
			if other := markers[marker]; other != "" {
				c.t.Errorf("message %s has made two runs, %s and %s", marker, other, e.Run)
			}
			markers[marker] = e.Run
		}
		return len(missing) == 0 && len(open) == 0
	})
	return ends
}

func markerOf(t testing.TB, r *record) string {
	t.Helper()
	return decode[struct{ Marker string }](t, r.Trigger.Payload).Marker
}
