package intake_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/bus/intake"
	"github.com/flowhost/flowhost/bus/internal/bustest"
	"github.com/flowhost/flowhost/bus/natsd"
	"github.com/flowhost/flowhost/run"
)

var errWaitEnded, errHostBusy = errors.New("the wait has ended already"), errors.New("the host is busy")

// waits stands for an engine with waits for messages.
type waits struct {
	mu           sync.Mutex
	open         map[string]run.OpenWait // by run and name
	begun, ended []run.OpenWait
	changed      chan struct{}
	busy         int      // signals that are not taken
	got          []string // what ended waits
	tried        int
}

func newWaits(open ...run.OpenWait) *waits {
	w := &waits{open: map[string]run.OpenWait{}, changed: make(chan struct{}, 1)}
	w.begin(open...)
	return w
}

func (w *waits) notify() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

func (w *waits) begin(all ...run.OpenWait) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, o := range all {
		w.open[string(o.Run)+o.Wait] = o
		w.begun = append(w.begun, o)
	}
	w.notify()
}

func (w *waits) Signal(_ context.Context, id run.ID, wait string, payload json.RawMessage) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tried++
	o, known := w.open[string(id)+wait]
	switch {
	case !known:
		return errWaitEnded
	case len(payload) > 0 && !json.Valid(payload):
		return run.Requestf(run.RequestPayload, "the payload is not JSON")
	case w.busy > 0:
		w.busy--
		return errHostBusy
	}
	delete(w.open, string(id)+wait)
	w.ended = append(w.ended, o)
	w.got = append(w.got, fmt.Sprintf("%s %s", wait, payload))
	w.notify()
	return nil
}

func (w *waits) Approve(_ context.Context, id run.ID, wait string, a run.Approval) error {
	text, err := a.MarshalJSON()
	if err != nil {
		return err
	}
	return w.Signal(context.Background(), id, wait, text)
}

func (w *waits) MessageWaits() (begun, ended []run.OpenWait) {
	w.mu.Lock()
	defer w.mu.Unlock()
	begun, ended = w.begun, w.ended
	w.begun, w.ended = nil, nil
	return begun, ended
}

func (w *waits) MessageWaitsChanged() <-chan struct{} { return w.changed }

// heard gives what ended waits, sorted.
func (w *waits) heard() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(slices.Values(w.got))
}

func (w *waits) want(t *testing.T, want ...string) {
	t.Helper()
	bustest.Eventually(t, fmt.Sprintf("%q end waits", want), func() bool { return len(w.heard()) >= len(want) })
	if diff := cmp.Diff(want, w.heard()); diff != "" {
		t.Errorf("what ended waits differs (-want +got):\n%s", diff)
	}
}

func codeOfWaits(err error) string {
	if errors.Is(err, errWaitEnded) {
		return api.CodeFinished
	}
	return ""
}

func waitFor(name, subject string) run.OpenWait {
	return run.OpenWait{Run: bustest.OpenRun, Flow: "orders", Wait: name, Subject: subject, Since: time.Now().UTC()}
}

func say(t *testing.T, nc *nats.Conn, subject string, bodies ...string) {
	t.Helper()
	for _, body := range bodies {
		if err := nc.Publish(subject, []byte(body)); err != nil {
			t.Fatal(err)
		}
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
}

// subscribed waits until the server knows of n subscriptions to a subject: a
// message that is published from then on arrives.
func subscribed(t *testing.T, nc *nats.Conn, subject string) {
	t.Helper()
	bustest.Eventually(t, "somebody listens to "+subject, func() bool {
		_, err := nc.Request(subject, []byte(`{`), 20*time.Millisecond)
		return !errors.Is(err, nats.ErrNoResponders)
	})
}

func TestCoreMessagesEndWaits(t *testing.T) {
	t.Parallel()
	server := bustest.StartServer(t, natsd.Config{})
	w := newWaits(waitFor("a", "x.a"), waitFor("also", "x.a"), waitFor("b", "x.b"))
	bustest.RunIntake(t, bustest.Connect(t, server), &bustest.Starter{}, nil, intake.Config{Waits: w, Code: codeOfWaits})
	nc := bustest.Connect(t, server)
	subscribed(t, nc, "x.a") // with what is no JSON, too
	w.mu.Lock()
	w.busy = 3
	w.mu.Unlock()
	say(t, nc, "x.c", `0`)
	say(t, nc, "x.a", `{"n":1}`, `{"n":2}`)
	w.want(t, `a {"n":1}`, `also {"n":1}`)
	w.begin(waitFor("later", "x.a"))
	subscribed(t, nc, "x.a")
	say(t, nc, "x.a", ``)
	say(t, nc, "x.b", `null`)
	w.want(t, `a {"n":1}`, `also {"n":1}`, `b null`, `later `)
	bustest.Eventually(t, "nobody listens any more", func() bool {
		_, err := nc.Request("x.a", nil, time.Second)
		return errors.Is(err, nats.ErrNoResponders)
	})
	letters := bustest.Messages(t, nc, bus.StreamDeadLetter)
	if len(letters) == 0 {
		t.Fatal("what is no JSON has made no dead letter")
	}
	first := letters[0]
	if first.Subject != bus.DeadLetterSubject("orders") || string(first.Data) != "{" || first.Header.Get(bus.HeaderCode) != run.RequestPayload ||
		first.Header.Get(bus.HeaderSubject) != "x.a" || !strings.Contains(first.Header.Get(bus.HeaderReason), string(bustest.OpenRun)) {
		t.Errorf("the dead letter is %s %v %s", first.Subject, first.Header, first.Data)
	}
}

// What a stream has kept since a wait began counts, also when nobody listened.
func TestMessagesOfStreamsEndWaits(t *testing.T) {
	t.Parallel()
	server := bustest.StartServer(t, natsd.Config{})
	nc := bustest.Connect(t, server)
	st := bustest.Stream(t, nc, "ORDERS", "orders.*")
	js := bustest.JetStream(t, nc)
	store := func(subject, body string) {
		if _, err := js.Publish(t.Context(), subject, []byte(body)); err != nil {
			t.Fatal(err)
		}
	}
	store("orders.a", `"before the wait"`)
	since := time.Now().UTC()
	a, b, c := waitFor("a", "orders.a"), waitFor("b", "orders.b"), waitFor("c", "orders.c")
	a.Since, b.Since, c.Since = since, since, since
	store("orders.b", `"of another"`)
	store("orders.a", `not JSON`)
	store("orders.a", `"first"`)
	store("orders.a", `"second"`)

	w := newWaits(a, b, c)
	stop := bustest.RunIntake(t, bustest.Connect(t, server), &bustest.Starter{}, nil, intake.Config{Waits: w, Code: codeOfWaits})
	w.want(t, `a "first"`, `b "of another"`)
	store("orders.c", `{`)
	store("orders.c", `"while it listens"`)
	w.want(t, `a "first"`, `b "of another"`, `c "while it listens"`)
	if letters := bustest.Messages(t, nc, bus.StreamDeadLetter); len(letters) != 2 || string(letters[0].Data) != "not JSON" || string(letters[1].Data) != "{" {
		t.Errorf("%d dead letters", len(letters))
	}
	bustest.Eventually(t, "no consumer is left", func() bool {
		info, err := st.Info(t.Context())
		return err == nil && info.State.Consumers == 0
	})
	stop()
}

// A stream that lets nobody read it aside leaves what comes by core NATS.
func TestWaitOnAWorkQueue(t *testing.T) {
	t.Parallel()
	server := bustest.StartServer(t, natsd.Config{})
	nc := bustest.Connect(t, server)
	if _, err := bustest.JetStream(t, nc).CreateStream(t.Context(), jetstream.StreamConfig{Name: "WORK", Subjects: []string{"work.*"}, Retention: jetstream.WorkQueuePolicy}); err != nil {
		t.Fatal(err)
	}
	var log bustest.LogLines
	w := newWaits(waitFor("a", "work.a"))
	bustest.RunIntake(t, bustest.Connect(t, server), &bustest.Starter{}, nil, intake.Config{Waits: w, Code: codeOfWaits, Log: log.Logger()})
	bustest.Eventually(t, "the log tells of it", func() bool { return log.Count("cannot be read for a wait") > 0 })
	say(t, nc, "work.a", `1`)
	w.want(t, `a 1`)
}

// A thousand waits need no more than their subscriptions.
func TestManyWaits(t *testing.T) {
	t.Parallel()
	server := bustest.StartServer(t, natsd.Config{})
	nc := bustest.Connect(t, server)
	const n = 1000
	var all []run.OpenWait
	var want []string
	for i := range n {
		all = append(all, waitFor(fmt.Sprintf("w%03d", i), fmt.Sprintf("many.%d", i)))
		want = append(want, fmt.Sprintf("w%03d %d", i, i))
	}
	w := newWaits(all...)
	in := bustest.Connect(t, server)
	bustest.RunIntake(t, in, &bustest.Starter{}, nil, intake.Config{Waits: w, Code: codeOfWaits})
	bustest.Eventually(t, "all are listened to", func() bool { return in.NumSubscriptions() >= n })
	if err := in.Flush(); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if err := nc.Publish(fmt.Sprintf("many.%d", i), fmt.Append(nil, i)); err != nil {
			t.Fatal(err)
		}
	}
	w.want(t, want...)
	bustest.Eventually(t, "none is listened to", func() bool { return in.NumSubscriptions() < n })
}

func TestWaitsByRequest(t *testing.T) {
	t.Parallel()
	server := bustest.StartServer(t, natsd.Config{})
	w := newWaits(waitFor("a", "x.a"), waitFor("b", "x.b"))
	nc := bustest.Connect(t, server)
	bustest.RunIntake(t, bustest.Connect(t, server), &bustest.Starter{}, nil, intake.Config{Waits: w, Code: codeOfWaits})
	for _, c := range []struct{ verb, body, answer, code string }{
		{"signal", `{"run":"` + string(bustest.OpenRun) + `","wait":"a","payload":{"n":1}}`, `{"run":"` + string(bustest.OpenRun) + `"}`, ""},
		{"signal", `{"run":"` + string(bustest.OpenRun) + `","wait":"a"}`, "", api.CodeFinished},
		{"signal", `{"run":"` + string(bustest.OpenRun) + `"}`, "", run.RequestParams},
		{"signal", `{"run":"x","wait":"a"}`, "", run.RequestParams},
		{"signal", `{"run":"` + string(bustest.OpenRun) + `","wait":"a","pay":1}`, "", run.RequestPayload},
		{"approve", `{"run":"` + string(bustest.OpenRun) + `","wait":"b"}`, "", run.RequestParams},
		{"approve", `{"run":"` + string(bustest.OpenRun) + `","wait":"b","approved":false,"reason":"no","payload":[1]}`, `{"run":"` + string(bustest.OpenRun) + `"}`, ""},
	} {
		answer, code := bustest.Request(t, nc, bus.APISubject(c.verb), c.body, nil)
		if code != c.code || c.answer != "" && answer != c.answer {
			t.Errorf("%s %s is answered with %s %s", c.verb, c.body, code, answer)
		}
	}
	w.want(t, `a {"n":1}`, `b {"approved":false,"by":null,"payload":[1],"reason":"no"}`)
}
