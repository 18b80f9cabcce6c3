package bus

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/flowhost/flowhost/run"
)

// Codes of error answers, beside those of run.RequestError.
const (
	CodeTimeout     = "timeout"      // the wait ended before the run, which goes on
	CodeBusy        = "busy"         // too many requests wait: try again later
	CodeUnavailable = "unavailable"  // the host takes nothing now: try again later
	CodeHeader      = "header"       // a header of the request is wrong
	CodeTooLarge    = "too_large"    // the answer does not fit into a message
	CodeUnknownRun  = "unknown_run"  // no such run, or it is older than the history that is kept
	CodeUnknownTask = "unknown_task" // the run has no such task
	CodeFinished    = "finished"     // the run, or its task or wait, has finished already
	CodeUnfinished  = "unfinished"   // the run has not finished yet
	CodeUnknownWait = "unknown_wait" // the run has no such wait
	CodeNotWaiting  = "not_waiting"  // the wait has not started yet
	CodeWaitKind    = "wait_kind"    // the wait ends another way
	CodeSucceeded   = "succeeded"    // the run succeeded, and there is nothing to be continued

	CodeUnknownSchedule = "unknown_schedule" // no flow has such a schedule
	CodeUnknownBackfill = "unknown_backfill" // no such backfill, or it ended long ago
	CodeDisabled        = "disabled"         // the flow has switched the schedule off
	CodePaused          = "paused"           // the schedule is paused already
	CodeNotPaused       = "not_paused"       // the schedule is not paused
	CodeOverlap         = "overlap"          // an earlier run of the schedule is still going, and its policy lets no other start
	CodeNoTimes         = "no_times"         // the schedule has decided no times in the range
	CodeTooManyTimes    = "too_many_times"   // more than a backfill may have

	CodeUnknownDeadLetter = "unknown_deadletter" // no such dead letter, or not any more
)

// answer is what a request is answered with. code and message are set in errors.
type answer struct {
	body          any
	code, message string
}

// reasonLimit says that the flow's concurrency leaves a request out.
const reasonLimit = "limit"

type receiptBody struct {
	Run      *run.ID `json:"run"`
	Accepted *bool   `json:"accepted,omitempty"`
	Reason   string  `json:"reason,omitempty"`   // reasonLimit
	Repeated bool    `json:"repeated,omitempty"` // the request's key was known
}

type faultBody struct {
	Run   run.ID `json:"run,omitempty"` // of a run that was accepted nevertheless
	Error struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// received answers {"run":"…"}, with "repeated":true where it was there before, or
// {"run":null,"accepted":false}, with "reason":"limit" where that is it.
func received(r run.Receipt) answer {
	if r.Run == "" {
		body := receiptBody{Accepted: new(bool)}
		if r.Limited {
			body.Reason = reasonLimit
		}
		return answer{body: body}
	}
	return answer{body: receiptBody{Run: &r.Run, Repeated: r.Repeated}}
}

// done answers a request that changes a run, once that is recorded.
func (in *Intake) done(id run.ID, err error) answer {
	if err != nil {
		return in.faultOf(id, err)
	}
	return received(run.Receipt{Run: id, Accepted: true})
}

// receipt is what the body was made of.
func (b *receiptBody) receipt() run.Receipt {
	r := run.Receipt{Repeated: b.Repeated, Limited: b.Reason == reasonLimit}
	if b.Run != nil {
		r.Run, r.Accepted = *b.Run, *b.Run != ""
	}
	return r
}

func fault(id run.ID, code, message string) answer {
	body := faultBody{Run: id}
	body.Error.Code, body.Error.Message = code, message
	return answer{body: body, code: code, message: message}
}

// faultOf answers with an error of the Starter or of a Control.
func (in *Intake) faultOf(id run.ID, err error) answer {
	return fault(id, in.codeOf(err), err.Error())
}

func (in *Intake) codeOf(err error) string {
	code := ""
	var wrong *run.RequestError
	switch {
	case errors.As(err, &wrong):
		code = wrong.Code
	case errors.Is(err, run.ErrUnknown):
		code = CodeUnknownRun
	case in.config.Code != nil:
		code = in.config.Code(err)
	}
	return cmp.Or(code, CodeUnavailable)
}

// finished answers with a run's record.
func (in *Intake) finished(record *run.Record) answer {
	limit := in.largest()
	body, err := encodeRecord(record, limit)
	if err == nil && len(body) > limit {
		err = fmt.Errorf("the record has %d bytes and a message may have %d", len(body), limit)
	}
	if err != nil {
		return fault(record.Run, CodeTooLarge, "the run is "+string(record.State)+": "+err.Error())
	}
	return answer{body: rawBody(body)}
}

// largest is the size of an answer's body that fits into a message.
func (in *Intake) largest() int { return int(in.nc.MaxPayload()) - overhead }

// rawBody is JSON already.
type rawBody []byte

// respond sends an answer to whoever waits for it.
func (in *Intake) respond(m inbound, a answer) {
	if m.reply == "" {
		return
	}
	body, ready := a.body.(rawBody)
	if !ready {
		var err error
		if body, err = run.EncodeJSON(a.body); err != nil {
			in.log.Error("an answer cannot be encoded", "error", err)
			return
		}
	}
	msg := &nats.Msg{Subject: m.reply, Data: body, Header: nats.Header{run.HeaderHops: {m.next()}}}
	if a.code != "" {
		msg.Header[micro.ErrorCodeHeader], msg.Header[micro.ErrorHeader] = []string{a.code}, []string{a.message}
	}
	if err := m.nc.PublishMsg(msg); err != nil {
		in.log.Error("an answer cannot be sent", "error", err)
	}
}

// next is the number of hops of what follows on the message: the reply subject may be
// one to which a flow listens.
func (m inbound) next() string {
	hops, _ := (&run.Trigger{Headers: m.header}).Hops() // one that cannot be read counts as too many
	return strconv.Itoa(hops + 1)
}

// answerable gives the reply subject when it can be somebody's inbox. A sender in the
// same account chooses it, and this connection may publish where the sender may not.
func answerable(reply string) string {
	if strings.HasPrefix(reply, prefixOwn) || strings.HasPrefix(reply, "$") {
		return ""
	}
	return reply
}
