package bus

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/flowhost/flowhost/run"
)

// MaxWait bounds the header Fh-Wait.
const MaxWait = 24 * time.Hour

var errStopping = errors.New("flowhost is stopping")

// inbound is a message that came by a subscription. reply is empty when nobody
// waits for an answer.
type inbound struct {
	nc      *nats.Conn // by which it came, and is answered
	subject string
	reply   string
	header  nats.Header
	data    []byte
}

// desk is where requests and core messages arrive, from the start of an intake to
// its end. Each accepted one has a goroutine that ends with its answer.
type desk struct {
	*Intake
	soft context.Context // ends when no more are to be accepted

	mu     sync.Mutex
	closed bool
	open   sync.WaitGroup // accepted and not answered
}

// close ends the acceptance and waits for all answers.
func (d *desk) close() {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.open.Wait()
}

// accept runs handle on a goroutine of its own, at most as many at a time as there
// are places: it blocks the subscription meanwhile, whose queue is bounded. handle
// must call leave once, when it gives its place to others. Once the intake stops,
// accept answers the sender so and returns false.
func (d *desk) accept(m inbound, places chan struct{}, handle func(leave func())) bool {
	select {
	case places <- struct{}{}:
		if d.begin(func() { handle(func() { <-places }) }) {
			return true
		}
		<-places
	case <-d.soft.Done():
	}
	d.respond(m, fault("", CodeUnavailable, errStopping.Error()))
	return false
}

func (d *desk) begin(handle func()) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return false
	}
	d.open.Go(handle)
	return true
}

// withheld says why a message is kept from flows whatever they listen to, "" when it is
// not: it is flowhost's own or the NATS server's, or a line of a task's log, which
// may come by a stream that copies others or by a subject that is mapped.
func (m inbound) withheld() string {
	if m.header.Get(HeaderAttempt) != "" {
		return "it is a line of a task's log"
	}
	return run.ReservedSubject(m.subject)
}

// message takes a core message for a trigger.
func (d *desk) message(hard context.Context, t Subscription, m *nats.Msg) {
	in := inbound{nc: d.app, subject: m.Subject, reply: answerable(m.Reply), header: m.Header, data: m.Data}
	if why := in.withheld(); why != "" {
		d.log.Debug("a message is not delivered", "flow", t.Flow, "trigger", t.Trigger, "subject", m.Subject, "reason", why)
		return
	}
	d.submit(hard, in, newRequest(t.Flow, t.Trigger, run.TriggerMessage, in, time.Now().UTC()))
}

// run takes a request for a run of a flow.
func (d *desk) run(hard context.Context, in inbound) {
	flow := strings.TrimPrefix(in.subject, prefixAPIRun)
	req := newRequest(flow, "", run.TriggerManual, in, time.Now().UTC())
	if text := in.header.Get(HeaderParams); text != "" {
		if err := json.Unmarshal([]byte(text), &req.Params); err != nil {
			d.respond(in, fault("", CodeHeader, fmt.Sprintf(`header %s is not an object like {"name":"value"}: %s`, HeaderParams, err)))
			return
		}
		delete(req.Trigger.Headers, HeaderParams) // they are recorded as what they are
	}
	d.submit(hard, in, req)
}

func newRequest(flow, trigger string, kind run.TriggerKind, m inbound, at time.Time) run.Request {
	payload := json.RawMessage(m.data)
	if len(payload) == 0 {
		payload = json.RawMessage("null")
	}
	return run.Request{Flow: flow, Key: keyOf(m.header.Get(HeaderKey)), Trigger: run.Trigger{
		Kind: kind, Name: trigger, Time: at, Subject: m.subject, Headers: ownHeaders(m.header), Payload: payload,
	}}
}

// maxKey is the length from which on a key is replaced by its digest: an engine
// keeps the keys of a day.
const maxKey = 64

func keyOf(text string) string {
	if len(text) <= maxKey {
		return text
	}
	return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(text)))
}

// ownHeaders are a message's headers without those that are addressed to NATS.
func ownHeaders(h nats.Header) map[string][]string {
	var own map[string][]string
	for name, values := range h {
		if strings.HasPrefix(name, "Nats-") {
			continue
		}
		if own == nil {
			own = make(map[string][]string, len(h))
		}
		own[name] = values
	}
	return own
}

func (d *desk) submit(hard context.Context, m inbound, req run.Request) {
	d.start(hard, m, func() (run.Receipt, error) { return d.starter.Submit(hard, req) }, func(err error) { d.refuse(hard, m, req, err) })
}

// start answers with the receipt of a new run, or with its record when the sender
// waits for that.
func (d *desk) start(hard context.Context, m inbound, submit func() (run.Receipt, error), refuse func(error)) {
	stay, ok := d.patient(m)
	if !ok {
		return
	}
	accepted := d.accept(m, d.submitting, func(submitted func()) {
		defer stay.leave()
		var receipt run.Receipt
		err := d.unready()
		if err == nil {
			receipt, err = submit()
		}
		submitted()
		switch {
		case err != nil:
			refuse(err)
		case stay.wait > 0 && receipt.Run != "":
			d.await(hard, m, receipt.Run, stay)
		default:
			d.respond(m, received(receipt))
		}
	})
	if !accepted {
		stay.leave()
	}
}

// patient finds how long the sender wants to wait, and takes a place in the waiting
// room for it. Without ok the sender is answered already.
func (d *desk) patient(m inbound) (s *stay, ok bool) {
	wait, err := waitTime(m)
	if err != nil {
		d.respond(m, fault("", CodeHeader, err.Error()))
		return nil, false
	}
	if s, err = d.waiting.enter(requesterOf(m.header), wait); err != nil {
		d.respond(m, fault("", CodeBusy, err.Error()))
	}
	return s, err == nil
}

// waitTime is how long the sender wants to wait for what it asks for, 0 when not
// at all.
func waitTime(m inbound) (time.Duration, error) {
	text := m.header.Get(HeaderWait)
	if text == "" || m.reply == "" {
		return 0, nil
	}
	wait, err := time.ParseDuration(text)
	if err != nil || wait <= 0 || wait > MaxWait {
		return 0, fmt.Errorf("header %s: %q is not a duration up to %s, like 30s", HeaderWait, text, MaxWait)
	}
	return wait, nil
}

// refuse answers a request that Submit returned an error for.
func (d *desk) refuse(hard context.Context, m inbound, req run.Request, err error) {
	var wrong *run.RequestError
	if !errors.As(err, &wrong) {
		if m.reply == "" {
			d.log.Warn("a message is lost: nobody waits for an answer, and no run could be started",
				"flow", req.Flow, "trigger", req.Trigger.Name, "subject", m.subject, "error", err)
		}
		d.respond(m, d.faultOf("", err))
		return
	}
	ctx, cancel := context.WithTimeout(hard, apiTimeout)
	defer cancel()
	if err := d.bury(ctx, letter{flow: req.Flow, inbound: m, why: wrong}); err != nil {
		d.log.Error("a dead letter is lost", "flow", req.Flow, "subject", m.subject, "reason", wrong, "error", err)
	}
	d.respond(m, fault("", wrong.Code, wrong.Message))
}

// await answers with the record of a run, or with the code timeout when its end
// does not come in time; the run goes on then.
func (d *desk) await(hard context.Context, m inbound, id run.ID, s *stay) {
	ctx, cancel := s.within(hard)
	defer cancel()
	record, err := d.starter.Wait(ctx, id)
	switch {
	case err == nil:
		d.respond(m, d.finished(record))
	case hard.Err() != nil:
		d.respond(m, fault(id, CodeUnavailable, errStopping.Error()+"; the run is recorded and goes on later"))
	case errors.Is(context.Cause(ctx), errGone):
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		d.respond(m, fault(id, CodeTimeout, fmt.Sprintf("the run has not ended within %s and goes on", s.wait)))
	default:
		d.respond(m, d.faultOf(id, err))
	}
}
