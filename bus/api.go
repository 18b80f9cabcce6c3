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
	Retry(ctx context.Context, id run.ID, how run.Again) (run.Receipt, error)
}

// endpoint is one verb of the micro service.
type endpoint struct {
	name, subject string
	handle        func(hard context.Context, m inbound)
}

// endpoints are those that the configuration can answer.
func (d *desk) endpoints() []endpoint {
	all := []endpoint{{VerbRun, prefixAPIRun + "*", d.run}}
	add := func(verb string, handle func(context.Context, inbound)) {
		all = append(all, endpoint{verb, APISubject(verb), handle})
	}
	if d.config.Flows != nil {
		add(VerbFlows, d.flows)
	}
	if d.config.Deployed != nil {
		add(VerbDeployed, d.deployed)
	}
	if d.config.Control != nil {
		add(VerbList, d.list)
		add(VerbGet, d.get)
		add(VerbWatch, d.watch)
		add(VerbCancel, d.cancel)
		add(VerbRetry, d.retry)
	}
	if d.config.Waits != nil {
		add(VerbSignal, d.signal)
		add(VerbApprove, d.approve)
	}
	if d.config.Control != nil && d.config.Logs != nil {
		add(VerbLogs, d.logs)
	}
	add(VerbDeadLetters, d.deadLetters)
	if d.config.Feed != nil {
		add(VerbFollow, d.follow)
	}
	if d.config.Limits != nil {
		add(VerbLimits, d.limits)
	}
	if d.config.Schedules != nil {
		add(VerbSchedules, d.schedules)
		add(VerbPause, d.pause)
		add(VerbResume, d.resume)
		add(VerbFire, d.fire)
	}
	if d.config.Backfills != nil {
		add(VerbBackfill, d.backfill)
		add(VerbBackfills, d.backfills)
		add(VerbCancelBackfill, d.cancelBackfill)
	}
	return all
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
	d.accept(m, d.reading, func(leave func()) {
		defer leave()
		ctx, cancel := context.WithTimeout(hard, readTime)
		defer cancel()
		d.respond(m, look(ctx))
	})
}

// write answers a request that changes something, once that is recorded.
func (d *desk) write(m inbound, change func() answer) {
	d.accept(m, d.submitting, func(leave func()) {
		defer leave()
		d.respond(m, change())
	})
}

// linger answers a request that may wait for something to happen: wait is 0 when it
// does not. The context ends with the wait, and when the intake stops.
func (d *desk) linger(hard context.Context, m inbound, look func(ctx context.Context, wait time.Duration) answer) {
	stay, ok := d.patient(m)
	if !ok {
		return
	}
	if stay.wait == 0 {
		d.read(hard, m, func(ctx context.Context) answer { return look(ctx, 0) })
		return
	}
	began := d.begin(func() {
		defer stay.leave()
		ctx, cancel := stay.within(hard)
		defer cancel()
		defer context.AfterFunc(d.soft, cancel)()
		answer := look(ctx, stay.wait)
		if !errors.Is(context.Cause(ctx), errGone) {
			d.respond(m, answer)
		}
	})
	if !began {
		stay.leave()
		d.respond(m, fault("", CodeUnavailable, errStopping.Error()))
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
