package bus

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/flowhost/flowhost/run"
)

// Verbs of the micro service: the requests on [APISubject]. VerbRun has the flow's
// name behind it, see [RunSubject].
const (
	VerbRun      = "run"      // start a run
	VerbFlows    = "flows"    // the flows that can be asked for
	VerbDeployed = "deployed" // these, to be compared with files
	VerbList     = "list"     // runs, newest first
	VerbGet      = "get"      // a run's record
	VerbWatch    = "watch"    // a run's record when it has changed
	VerbLogs     = "logs"     // lines that a run's tasks wrote
	VerbFollow   = "follow"   // events after a cursor
	VerbCancel   = "cancel"   // stop a run, or a task of it
	VerbRetry    = "retry"    // a new run of one that was there before
	VerbSignal   = "signal"   // end a wait of a run with a payload
	VerbApprove  = "approve"  // decide a wait of a run for an approval

	VerbLimits      = "limits"      // limits as they stand
	VerbDeadLetters = "deadletters" // messages that could make no run

	VerbSchedules      = "schedules"       // schedules as they stand
	VerbPause          = "pause"           // stop a schedule, or all of a flow
	VerbResume         = "resume"          // let it go on
	VerbFire           = "fire"            // start a run of a schedule now
	VerbBackfill       = "backfill"        // start the runs of past nominal times of a schedule
	VerbBackfills      = "backfills"       // how far these have come
	VerbCancelBackfill = "cancel_backfill" // stop one
)

const prefixAPI = "fh.v1.api."

// APISubject is where a verb is asked for.
func APISubject(verb string) string { return prefixAPI + verb }

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
func (d *desk) endpoints() []endpoint {
	all := []endpoint{{VerbRun, prefixAPIRun + "*", d.submitting, MaxPayload, d.run}}
	add := func(q *queue, most int, verb string, handle func(context.Context, inbound)) {
		all = append(all, endpoint{verb, APISubject(verb), q, most, handle})
	}
	if d.config.Flows != nil {
		add(d.reading, maxAsked, VerbFlows, d.flows)
	}
	if d.config.Deployed != nil {
		add(d.reading, maxAsked, VerbDeployed, d.deployed)
	}
	if d.config.Control != nil {
		add(d.reading, maxAsked, VerbList, d.list)
		add(d.reading, maxAsked, VerbGet, d.get)
		add(d.reading, maxAsked, VerbWatch, d.watch)
		add(d.submitting, maxAsked, VerbCancel, d.cancel)
		add(d.submitting, MaxPayload, VerbRetry, d.retry)
	}
	if d.config.Waits != nil {
		add(d.submitting, MaxPayload, VerbSignal, d.signal)
		add(d.submitting, MaxPayload, VerbApprove, d.approve)
	}
	if d.config.Control != nil && d.config.Logs != nil {
		add(d.reading, maxAsked, VerbLogs, d.logs)
	}
	add(d.reading, maxAsked, VerbDeadLetters, d.deadLetters)
	if d.config.Feed != nil {
		add(d.reading, maxAsked, VerbFollow, d.follow)
	}
	if d.config.Limits != nil {
		add(d.reading, maxAsked, VerbLimits, d.limits)
	}
	if d.config.Schedules != nil {
		add(d.reading, maxAsked, VerbSchedules, d.schedules)
		add(d.submitting, maxAsked, VerbPause, d.pause)
		add(d.submitting, maxAsked, VerbResume, d.resume)
		add(d.submitting, MaxPayload, VerbFire, d.fire)
	}
	if d.config.Backfills != nil {
		add(d.reading, MaxPayload, VerbBackfill, d.backfill)
		add(d.reading, maxAsked, VerbBackfills, d.backfills)
		add(d.submitting, maxAsked, VerbCancelBackfill, d.cancelBackfill)
	}
	return all
}

// ask has a request handled.
func (d *desk) ask(hard context.Context, e endpoint, m inbound) {
	if len(m.data) > e.most {
		d.respond(m, d.faultOf("", run.Requestf(run.RequestPayload, "the body has %d bytes, and %s takes no more than %d", len(m.data), e.name, e.most)))
		return
	}
	m.who = requesterOf(m.header)
	d.take(e.queue, d.waiting.config.callerOf(m.who), m, func(m inbound) { e.handle(hard, m) })
}

// checked is the body of a request. A wrong one is answered with its
// *run.RequestError.
type checked interface{ check() error }

// runBody names the run that a request is about.
type runBody struct {
	Run run.ID `json:"run"`
}

func (b *runBody) check() error {
	if _, err := run.ParseID(string(b.Run)); err != nil {
		return run.Requestf(run.RequestParams, "%s", err)
	}
	return nil
}

// understood decodes and checks the body of a request; an empty one is {}. When it
// is wrong the sender is told so. Unknown fields are wrong too: a misspelt "task"
// must not cancel the whole run.
func (d *desk) understood(m inbound, body checked) bool {
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
		err = body.check()
	}
	if err != nil {
		d.respond(m, d.faultOf("", err))
	}
	return err == nil
}

// read answers a request with what is known now.
func (d *desk) read(hard context.Context, m inbound, look func(context.Context) answer) {
	ctx, cancel := context.WithTimeout(hard, readTime)
	defer cancel()
	d.respond(m, look(ctx))
}

// linger answers a request that may wait for something to happen: wait is 0 when it
// does not. The context ends with the wait, and when the intake stops.
func (d *desk) linger(hard context.Context, m inbound, look func(ctx context.Context, wait time.Duration) answer) {
	wait, stay, ok := d.patient(m)
	if !ok {
		return
	}
	if stay == nil {
		d.read(hard, m, func(ctx context.Context) answer { return look(ctx, 0) })
		return
	}
	m.seat.leave()
	defer stay.leave()
	ctx, cancel := stay.within(hard, wait)
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
			return fault("", CodeTooLarge, "the answer cannot be encoded: "+err.Error())
		case len(body) <= in.largest():
			return answer{body: rawBody(body)}
		case n <= 1:
			return fault("", CodeTooLarge, fmt.Sprintf("the answer has %d bytes and a message may have %d", len(body), in.largest()))
		}
	}
}
