package intake

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/bus/internal/jskit"
	"github.com/flowhost/flowhost/bus/internal/recordjson"
	"github.com/flowhost/flowhost/run"
)

// answer is what a request is answered with. code and message are set in errors.
type answer struct {
	body          any
	code, message string
}

// received answers {"run":"…"}, with "repeated":true where it was there before, or
// {"run":null,"accepted":false}, with "reason":"limit" where that is it.
func received(r run.Receipt) answer {
	if r.Run == "" {
		body := api.ReceiptAnswer{Accepted: new(bool)}
		if r.Limited {
			body.Reason = api.ReasonLimit
		}
		return answer{body: body}
	}
	return answer{body: api.ReceiptAnswer{Run: &r.Run, Repeated: r.Repeated}}
}

// done answers a request that changes a run, once that is recorded.
func (in *Intake) done(id run.ID, err error) answer {
	if err != nil {
		return in.faultOf(id, err)
	}
	return received(run.Receipt{Run: id, Accepted: true})
}

func fault(id run.ID, code, message string) answer {
	body := api.ErrorAnswer{Run: id}
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
		code = api.CodeUnknownRun
	case in.config.Code != nil:
		code = in.config.Code(err)
	}
	return cmp.Or(code, api.CodeUnavailable)
}

// finished answers with a run's record.
func (in *Intake) finished(record *run.Record) answer {
	limit := in.largest()
	body, err := recordjson.Encode(record, limit)
	if err == nil && len(body) > limit {
		err = fmt.Errorf("the record has %d bytes and a message may have %d", len(body), limit)
	}
	if err != nil {
		return fault(record.Run, api.CodeTooLarge, "the run is "+string(record.State)+": "+err.Error())
	}
	return answer{body: rawBody(body)}
}

// largest is the size of an answer's body that fits into a message.
func (in *Intake) largest() int { return int(in.nc.MaxPayload()) - jskit.Overhead }

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
	if strings.HasPrefix(reply, bus.PrefixOwn) || strings.HasPrefix(reply, "$") {
		return ""
	}
	return reply
}
