package intake

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/bus/internal/jskit"
	"github.com/flowhost/flowhost/run"
)

// errStopping answers what comes while the host ends.
var errStopping = errors.New("flowhost is stopping: it lets running attempts end, and answers no request until it has started again")

// inbound is a message that came by a subscription. reply is empty when nobody
// waits for an answer.
type inbound struct {
	nc      *nats.Conn // by which it came, and is answered
	subject string
	reply   string
	header  nats.Header
	data    []byte

	who  api.Requester // of a request
	slot *slot         // in which it is handled, nil for none
}

// size is what it holds, in bytes.
func (m inbound) size() int {
	n := len(m.data)
	for name, values := range m.header {
		for _, v := range values {
			n += len(name) + len(v)
		}
	}
	return n
}

// bare is enough of it for an answer.
func (m inbound) bare() inbound {
	return inbound{nc: m.nc, subject: m.subject, reply: m.reply, header: nats.Header{run.HeaderHops: m.header[run.HeaderHops]}}
}

// requests is where requests and core messages arrive, from the start of an intake to
// its end. Subscriptions only put them into a queue; each has a goroutine from when it
// gets a place to its answer.
type requests struct {
	*Intake
	soft context.Context // ends when no more are to be accepted

	submitting *queue // of what changes something
	reading    *queue // of what does not

	mu     sync.Mutex
	closed bool
	open   sync.WaitGroup // begun and not answered
	lost   int            // messages, since the start
	quiet  time.Time      // until then the log omits these
}

func newRequests(soft context.Context, in *Intake) *requests {
	d := &requests{Intake: in, soft: soft}
	d.submitting = newQueue(orDefault(in.config.Submitting, 256), d.begin)
	d.reading = newQueue(orDefault(in.config.Reading, max(2*runtime.GOMAXPROCS(0), 4)), d.begin)
	return d
}

// close ends the acceptance and waits for all answers.
func (d *requests) close() {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.submitting.end()
	d.reading.end()
	d.open.Wait()
}

// take has a message handled in a place of the queue, or answers why it is not.
func (d *requests) take(q *queue, who caller, m inbound, handle func(inbound)) {
	if d.soft.Err() != nil {
		d.reject(m, errStopping)
		return
	}
	q.enter(who, job{
		size: m.size(),
		do:   func(s *slot) { m.slot = s; handle(m) },
		not:  func(err error) { d.reject(m, err) },
	})
}

func (d *requests) reject(m inbound, err error) {
	var full *fullError
	if !errors.As(err, &full) {
		d.respond(m, fault("", api.CodeUnavailable, err.Error()))
		return
	}
	if m.reply == "" {
		d.loses(m, err)
	}
	d.respond(m, fault("", api.CodeBusy, err.Error()))
}

// lossPause is between two lines of the log about messages that are lost in a flood.
const lossPause = time.Second

func (d *requests) loses(m inbound, err error) {
	now := time.Now()
	d.mu.Lock()
	d.lost++
	lost, quiet := d.lost, now.Before(d.quiet)
	if !quiet {
		d.quiet = now.Add(lossPause)
	}
	d.mu.Unlock()
	if !quiet {
		d.log.Warn("messages are lost: more come than are taken, and nobody waits for an answer", "subject", m.subject, "lost_since_start", lost, "error", err)
	}
}

func (d *requests) begin(handle func()) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return false
	}
	d.open.Go(handle)
	return true
}

// withheld gives the reason why a message is kept from flows whatever they listen to, "" when it is
// not: it is flowhost's own or the NATS server's, or a line of a task's log, which
// may come by a stream that copies others or by a subject that is mapped.
func (m inbound) withheld() string {
	if m.header.Get(bus.HeaderAttempt) != "" {
		return "it is a line of a task's log"
	}
	return run.ReservedSubject(m.subject)
}

// message takes a core message for a trigger.
func (d *requests) message(hard context.Context, t Subscription, m *nats.Msg) {
	in := inbound{nc: d.app, subject: m.Subject, reply: answerable(m.Reply), header: m.Header, data: m.Data}
	if why := in.withheld(); why != "" {
		d.log.Debug("a message is not delivered", "flow", t.Flow, "trigger", t.Trigger, "subject", m.Subject, "reason", why)
		return
	}
	at := time.Now().UTC()
	d.take(d.submitting, d.senderOf(t, in), in, func(in inbound) {
		d.submit(hard, in, newRequest(t.Flow, t.Trigger, run.TriggerMessage, in, at))
	})
}

// senderOf gives the line in which a message for a trigger waits: that of the client's
// connection, or the trigger's own when the message does not come from a client.
func (d *requests) senderOf(t Subscription, m inbound) caller {
	if who := requesterOf(m.header); d.config.Operator != "" && who.Account != "" {
		return caller{name: d.waiting.config.callerOf(who).name}
	}
	return caller{name: queueGroup(t)}
}

// run takes a request for a run of a flow.
func (d *requests) run(hard context.Context, in inbound) {
	req, err := manualRequest(in, time.Now().UTC())
	if err != nil {
		d.respond(in, d.faultOf("", err))
		return
	}
	d.submit(hard, in, req)
}

// manualRequest is what a message on [bus.RunSubject] asks for. An error is a
// *run.RequestError.
func manualRequest(in inbound, at time.Time) (run.Request, error) {
	flow := strings.TrimPrefix(in.subject, bus.PrefixAPIRun)
	req := newRequest(flow, "", run.TriggerManual, in, at)
	if text := in.header.Get(bus.HeaderParams); text != "" {
		if err := json.Unmarshal([]byte(text), &req.Params); err != nil {
			return req, run.Requestf(run.RequestHeader, `header %s is not an object like {"name":"value"}: %s`, bus.HeaderParams, err)
		}
		delete(req.Trigger.Headers, bus.HeaderParams) // they are recorded as what they are
	}
	return req, nil
}

func newRequest(flow, trigger string, kind run.TriggerKind, m inbound, at time.Time) run.Request {
	payload := json.RawMessage(m.data)
	if len(payload) == 0 {
		payload = json.RawMessage("null")
	}
	return run.Request{Flow: flow, Key: keyOf(m.header.Get(bus.HeaderKey)), Trigger: run.Trigger{
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

func (d *requests) submit(hard context.Context, m inbound, req run.Request) {
	submit := func(waits bool) (run.Receipt, error) {
		if waits {
			return d.starter.Begin(hard, req)
		}
		return d.starter.Submit(hard, req)
	}
	d.start(hard, m, submit, func(err error) { d.refuse(hard, m, req, err) })
}

// start answers with the receipt of a new run, or with its record when the sender
// waits for that.
func (d *requests) start(hard context.Context, m inbound, submit func(waits bool) (run.Receipt, error), refuse func(error)) {
	wait, waiter, ok := d.reserveWait(m)
	if !ok {
		return
	}
	var receipt run.Receipt
	err := d.unready()
	if err == nil {
		receipt, err = submit(waiter != nil)
	}
	m.slot.leave()
	if waiter != nil {
		defer waiter.leave()
	}
	switch {
	case err != nil:
		refuse(err)
	case waiter != nil && receipt.Run != "":
		d.await(hard, m.bare(), receipt.Run, waiter, wait)
	default:
		d.respond(m, received(receipt))
	}
}

// reserveWait finds how long the sender wants to wait, and takes a place in the wait
// list for it, nil when it does not. Without ok the sender is answered already.
func (d *requests) reserveWait(m inbound) (wait time.Duration, s *waiter, ok bool) {
	wait, err := waitTime(m)
	if err != nil {
		d.respond(m, fault("", api.CodeHeader, err.Error()))
		return 0, nil, false
	}
	if wait == 0 {
		return 0, nil, true
	}
	if s, err = d.waiting.enter(m.who); err != nil {
		d.respond(m, fault("", api.CodeBusy, err.Error()+", or without the header "+bus.HeaderWait))
	}
	return wait, s, err == nil
}

// waitTime is how long the sender wants to wait for what it asks for, 0 when not
// at all.
func waitTime(m inbound) (time.Duration, error) {
	text := m.header.Get(bus.HeaderWait)
	if text == "" || m.reply == "" {
		return 0, nil
	}
	wait, err := time.ParseDuration(text)
	if err != nil || wait <= 0 || wait > api.MaxWait {
		return 0, fmt.Errorf("header %s: %q is not a duration up to %s, like 30s", bus.HeaderWait, text, api.MaxWait)
	}
	return wait, nil
}

// refuse answers a request that Submit returned an error for.
func (d *requests) refuse(hard context.Context, m inbound, req run.Request, err error) {
	var wrong *run.RequestError
	if !errors.As(err, &wrong) {
		if m.reply == "" {
			d.log.Warn("a message is lost: nobody waits for an answer, and no run could be started",
				"flow", req.Flow, "trigger", req.Trigger.Name, "subject", m.subject, "error", err)
		}
		d.respond(m, d.faultOf("", err))
		return
	}
	ctx, cancel := context.WithTimeout(hard, jskit.APITimeout)
	defer cancel()
	if err := d.storeDeadLetter(ctx, deadLetter{flow: req.Flow, trigger: req.Trigger.Name, inbound: m, why: wrong}); err != nil {
		d.log.Error("a dead letter is lost", "flow", req.Flow, "subject", m.subject, "reason", wrong, "error", err)
	}
	d.respond(m, fault("", wrong.Code, wrong.Message))
}

// await answers with the record of a run, or with the code timeout when its end
// does not come in time; the run continues then.
func (d *requests) await(hard context.Context, m inbound, id run.ID, s *waiter, wait time.Duration) {
	ctx, cancel := s.within(hard, wait)
	defer cancel()
	record, err := d.starter.Wait(ctx, id)
	switch {
	case err == nil:
		d.respond(m, d.finished(record))
	case hard.Err() == nil && errors.Is(context.Cause(ctx), errGone):
	case d.unrecorded(hard):
		d.respond(m, fault("", api.CodeUnavailable, "flowhost is stopping, and it is not known whether the run is recorded: ask again, with a header "+bus.HeaderKey))
	case hard.Err() != nil:
		d.respond(m, fault(id, api.CodeUnavailable, "flowhost is stopping; the run is recorded and resumes later"))
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		d.respond(m, fault(id, api.CodeTimeout, fmt.Sprintf("the run has not ended within %s and continues", wait)))
	default:
		d.respond(m, d.faultOf(id, err))
	}
}

// unrecorded reports whether a run that was begun may not be durable, before others learn of it.
func (d *requests) unrecorded(hard context.Context) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(hard), jskit.APITimeout)
	defer cancel()
	return d.starter.Sync(ctx) != nil
}
