package intake

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/bus/internal/jskit"
	"github.com/flowhost/flowhost/run"
)

// readTime bounds the work for an answer with runs or logs.
const readTime = 20 * time.Second

// Control is what an intake needs of an engine to show and change runs. All methods
// answer run.ErrUnknown for a run that is not known.
type Control interface {
	Get(ctx context.Context, id run.ID) (*run.Record, error)
	List(ctx context.Context, q run.Query) (run.Page, error)
	// Watch gives a run's record and its version once that is above seen.
	Watch(ctx context.Context, id run.ID, seen uint64) (*run.Record, uint64, error)
	Cancel(ctx context.Context, id run.ID, reason string) error
	CancelTask(ctx context.Context, id run.ID, task run.TaskRef, reason string) error
	// Retry makes a new run of one that was there before.
	Retry(ctx context.Context, id run.ID, how run.RerunOptions) (run.Receipt, error)
}

// endpoint is one verb of the micro service.
type endpoint struct {
	name, subject string
	queue         *queue
	most          int // bytes of its body
	handle        func(hard context.Context, m inbound)
}

// maxAsked bounds the body of a request that holds no values for runs.
const maxAsked = 64 << 10

// endpoints are those that the configuration can answer.
func (d *requests) endpoints() []endpoint {
	all := []endpoint{{api.VerbRun, bus.PrefixAPIRun + "*", d.submitting, jskit.MaxPayload, d.run}}
	add := func(q *queue, most int, verb string, handle func(context.Context, inbound)) {
		all = append(all, endpoint{verb, bus.APISubject(verb), q, most, handle})
	}
	if d.config.Flows != nil {
		add(d.reading, maxAsked, api.VerbFlows, d.flows)
	}
	if d.config.Deployed != nil {
		add(d.reading, maxAsked, api.VerbDeployed, d.deployed)
	}
	if d.config.Control != nil {
		add(d.reading, maxAsked, api.VerbList, d.list)
		add(d.reading, maxAsked, api.VerbGet, d.get)
		add(d.reading, maxAsked, api.VerbWatch, d.watch)
		add(d.submitting, maxAsked, api.VerbCancel, d.cancel)
		add(d.submitting, jskit.MaxPayload, api.VerbRetry, d.retry)
	}
	if d.config.Waits != nil {
		add(d.submitting, jskit.MaxPayload, api.VerbSignal, d.signal)
		add(d.submitting, jskit.MaxPayload, api.VerbApprove, d.approve)
	}
	if d.config.Control != nil && d.config.Logs != nil {
		add(d.reading, maxAsked, api.VerbLogs, d.logs)
	}
	if d.config.Control != nil && d.config.Artifacts != nil {
		add(d.reading, maxAsked, api.VerbArtifact, d.artifact)
	}
	if d.config.Buckets != nil {
		add(d.reading, maxAsked, api.VerbKVBuckets, d.operatorOnly(aboutBuckets, d.kvBuckets))
		add(d.reading, maxAsked, api.VerbKVList, d.operatorOnly(aboutBuckets, d.kvList))
		add(d.reading, maxAsked, api.VerbKVGet, d.operatorOnly(aboutBuckets, d.kvGet))
		add(d.submitting, jskit.MaxPayload, api.VerbKVPut, d.operatorOnly(aboutBuckets, d.kvPut))
		add(d.submitting, maxAsked, api.VerbKVDelete, d.operatorOnly(aboutBuckets, d.kvDelete))
	}
	add(d.reading, maxAsked, api.VerbDeadLetters, d.operatorOnly(aboutDeadLetters, d.deadLetters))
	add(d.submitting, maxAsked, api.VerbSendDeadLetter, d.operatorOnly(aboutDeadLetters, d.sendDeadLetter))
	add(d.submitting, maxAsked, api.VerbDiscardDeadLetter, d.operatorOnly(aboutDeadLetters, d.discardDeadLetter))
	if d.config.Host != nil {
		add(d.reading, maxAsked, api.VerbHost, d.host)
		add(d.submitting, maxAsked, api.VerbPauseHost, d.operatorOnly(aboutHost, d.pauseHost))
		add(d.submitting, maxAsked, api.VerbResumeHost, d.operatorOnly(aboutHost, d.resumeHost))
		add(d.submitting, maxAsked, api.VerbDrain, d.operatorOnly(aboutHost, d.drain))
	}
	if d.config.Feed != nil {
		add(d.reading, maxAsked, api.VerbFollow, d.follow)
	}
	if d.config.Limits != nil {
		add(d.reading, maxAsked, api.VerbLimits, d.limits)
	}
	if d.config.Schedules != nil {
		add(d.reading, maxAsked, api.VerbSchedules, d.schedules)
		add(d.submitting, maxAsked, api.VerbPause, d.pause)
		add(d.submitting, maxAsked, api.VerbResume, d.resume)
		add(d.submitting, jskit.MaxPayload, api.VerbFire, d.fire)
	}
	if d.config.Backfills != nil {
		add(d.reading, jskit.MaxPayload, api.VerbBackfill, d.backfill)
		add(d.reading, maxAsked, api.VerbBackfills, d.backfills)
		add(d.submitting, maxAsked, api.VerbCancelBackfill, d.cancelBackfill)
	}
	return all
}

// ask has a request handled.
func (d *requests) ask(hard context.Context, e endpoint, m inbound) {
	if len(m.data) > e.most {
		d.respond(m, d.faultOf("", run.Requestf(run.RequestPayload, "the body has %d bytes, and %s takes no more than %d", len(m.data), e.name, e.most)))
		return
	}
	m.who = requesterOf(m.header)
	d.take(e.queue, d.waiting.config.callerOf(m.who), m, func(m inbound) { e.handle(hard, m) })
}

// Why clients may not send some requests.
const (
	aboutDeadLetters = "dead letters hold messages of others"
	aboutHost        = "it affects the flows of all clients"
	aboutBuckets     = "buckets hold what flows have stored"
)

// operatorOnly refuses requests of clients, whatever the server lets them publish on.
// Without accounts that tell them apart, everybody is the operator.
func (d *requests) operatorOnly(why string, handle func(context.Context, inbound)) func(context.Context, inbound) {
	return func(hard context.Context, m inbound) {
		if !d.waiting.config.callerOf(m.who).operator {
			d.respond(m, fault("", api.CodeDenied, why+": this request needs the operator's credentials"))
			return
		}
		handle(hard, m)
	}
}

// checked is the body of a request. A wrong one is answered with its
// *run.RequestError.
type checked interface{ Check() error }

// decode decodes and checks the body of a request; an empty one is {}. When it
// is wrong the sender gets an error. Unknown fields are wrong, too: a misspelled "task"
// must not cancel the whole run.
func (d *requests) decode(m inbound, body checked) bool {
	data := m.data
	if len(bytes.TrimSpace(data)) == 0 {
		data = []byte("{}")
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(body)
	if err == nil {
		if _, more := decoder.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("something follows the object")
		}
	}
	if err != nil {
		err = run.Requestf(run.RequestPayload, "the body is not what is expected here: %s", err)
	} else {
		err = body.Check()
	}
	if err != nil {
		d.respond(m, d.faultOf("", err))
	}
	return err == nil
}

// read answers a request with what is known now.
func (d *requests) read(hard context.Context, m inbound, look func(context.Context) answer) {
	ctx, cancel := context.WithTimeout(hard, readTime)
	defer cancel()
	d.respond(m, look(ctx))
}

// longPoll answers a request that may wait for something to happen: wait is 0 when it
// does not. The context ends with the wait, and when the intake stops.
func (d *requests) longPoll(hard context.Context, m inbound, look func(ctx context.Context, wait time.Duration) answer) {
	wait, waiter, ok := d.reserveWait(m)
	if !ok {
		return
	}
	if waiter == nil {
		d.read(hard, m, func(ctx context.Context) answer { return look(ctx, 0) })
		return
	}
	m.slot.leave()
	defer waiter.leave()
	ctx, cancel := waiter.within(hard, wait)
	defer cancel()
	defer context.AfterFunc(d.soft, cancel)()
	answer := look(ctx, wait)
	if !errors.Is(context.Cause(ctx), errGone) {
		d.respond(m, answer)
	}
}

// shorten halves what is to be answered until it fits. encode gives the answer with
// the first n parts.
func (in *Intake) shorten(n int, encode func(n int) any) answer {
	for ; ; n /= 2 {
		body, err := run.EncodeJSON(encode(n))
		switch {
		case err != nil:
			return fault("", api.CodeTooLarge, "the answer cannot be encoded: "+err.Error())
		case len(body) <= in.largest():
			return answer{body: rawBody(body)}
		case n <= 1:
			return fault("", api.CodeTooLarge, fmt.Sprintf("the answer has %d bytes and a message may have %d", len(body), in.largest()))
		}
	}
}
