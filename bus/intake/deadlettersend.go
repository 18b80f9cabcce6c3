package intake

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/run"
)

// sendDeadLetter starts the run that a dead letter could not start. The dead letter is
// removed once the run is recorded, and stays if there is none.
func (d *requests) sendDeadLetter(hard context.Context, m inbound) {
	d.changeDeadLetter(hard, m, func(ctx context.Context, stream jetstream.Stream, msg *jetstream.RawStreamMsg) answer {
		request, err := requestAgain(msg)
		if err == nil {
			err = d.unready()
		}
		var receipt run.Receipt
		if err == nil {
			receipt, err = d.starter.Submit(hard, request)
		}
		if unsendable := (*notSendableError)(nil); errors.As(err, &unsendable) {
			return fault("", api.CodeNotSendable, err.Error())
		}
		if err != nil {
			return d.faultOf("", err)
		}
		if receipt.Run != "" {
			if err := removeDeadLetter(ctx, stream, msg.Sequence); err != nil {
				d.log.Warn("a dead letter has started a run and cannot be removed: it gives the same run if it is sent again within a day",
					"sequence", msg.Sequence, "run", receipt.Run, "error", err)
			}
		}
		return received(receipt)
	})
}

// discardDeadLetter removes a dead letter.
func (d *requests) discardDeadLetter(hard context.Context, m inbound) {
	d.changeDeadLetter(hard, m, func(ctx context.Context, stream jetstream.Stream, msg *jetstream.RawStreamMsg) answer {
		if err := removeDeadLetter(ctx, stream, msg.Sequence); err != nil {
			return d.faultOf("", err)
		}
		return answer{body: api.Discarded{Sequence: msg.Sequence}}
	})
}

// changeDeadLetter answers a request about the dead letter that its body names.
func (d *requests) changeDeadLetter(hard context.Context, m inbound, change func(context.Context, jetstream.Stream, *jetstream.RawStreamMsg) answer) {
	var body api.DeadLetterRequest
	if !d.decode(m, &body) {
		return
	}
	d.read(hard, m, func(ctx context.Context) answer {
		stream, err := d.js.Stream(ctx, bus.StreamDeadLetter)
		if err != nil {
			return d.faultOf("", err)
		}
		msg, err := getDeadLetter(ctx, stream, body.Sequence)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return unknownDeadLetter(body.Sequence)
		}
		if err != nil {
			return d.faultOf("", err)
		}
		return change(ctx, stream, msg)
	})
}

// removeDeadLetter removes one, or finds that somebody else has done so.
func removeDeadLetter(ctx context.Context, stream jetstream.Stream, seq uint64) error {
	err := stream.DeleteMsg(ctx, seq)
	if err == nil {
		return nil
	}
	if _, gone := stream.GetMsg(ctx, seq); errors.Is(gone, jetstream.ErrMsgNotFound) {
		return nil
	}
	return err
}

// notSendableError reports a dead letter of which no request for a run can be made.
type notSendableError struct{ reason string }

func (e *notSendableError) Error() string { return e.reason }

// requestAgain makes the request that a dead letter was. It starts a new chain of
// messages, and has a key of its own unless its sender gave it one, so that sending it
// twice starts one run.
func requestAgain(msg *jetstream.RawStreamMsg) (run.Request, error) {
	letter := deadLetterOf(msg)
	in := inbound{subject: letter.Subject, header: sendersHeaders(msg.Header), data: msg.Data}
	in.header.Del(run.HeaderHops)
	var request run.Request
	switch {
	case letter.ForWait != "":
		id, wait, _ := strings.Cut(letter.ForWait, "/")
		return request, &notSendableError{fmt.Sprintf("the message was to end wait %q of run %s, not to start a run: 'flowhost signal %s %s' ends the wait with a payload", wait, id, id, wait)}
	case letter.NoBody:
		return request, &notSendableError{fmt.Sprintf("the body was not kept, it has %d bytes: publish the message again where it came from", letter.Size)}
	case strings.HasPrefix(in.subject, bus.PrefixAPIRun):
		var err error
		if request, err = manualRequest(in, letter.At); err != nil {
			return request, err
		}
	case letter.Trigger != "" || strings.HasPrefix(in.subject, bus.PrefixTrigger):
		request = newRequest(letter.Flow, letter.Trigger, run.TriggerMessage, in, letter.At)
	default:
		return request, &notSendableError{"the dead letter does not state for which trigger the message was: publish its body to its subject again"}
	}
	if request.Key == "" {
		request.Key = fmt.Sprintf("deadletter/%d/%d", letter.Sequence, letter.At.UnixNano()) // a number alone may be given again
	}
	return request, nil
}
