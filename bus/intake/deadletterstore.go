package intake

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/internal/jskit"
	"github.com/flowhost/flowhost/run"
)

// deadLetter is a message that cannot make a run.
type deadLetter struct {
	inbound
	flow    string
	trigger string // of the flow; empty when it was asked for by name
	forWait string // what it could not end, see [bus.HeaderForWait]; empty: it could start no run
	why     *run.RequestError
	id      string // known for messages of streams, so that they are kept once only
}

// maxReason bounds the header Fh-Reason, in bytes: a stream takes no message whose
// headers are over 64 KiB.
const maxReason = 4 << 10

// storeDeadLetter stores a dead letter, as often as it takes until ctx ends. What does not fit
// is left out: first the body, then the original headers too.
func (in *Intake) storeDeadLetter(ctx context.Context, l deadLetter) error {
	if l.why.Code == run.RequestLoop {
		in.log.Error("a message starts no run", "flow", l.flow, "subject", l.subject, "reason", l.why)
		if l.header.Get(bus.HeaderCode) != "" {
			return nil // it is a dead letter, and kept already
		}
	}
	forms := l.forms()
	p := jskit.Backoff{Log: in.log, What: "store a dead letter"}
	for {
		err := in.publishDeadLetter(ctx, forms[0])
		switch {
		case err == nil:
			p.Done()
			return nil
		case errors.Is(err, nats.ErrConnectionClosed):
			return err
		case jskit.Permanent(err) && len(forms) > 1:
			forms = forms[1:]
			continue
		case jskit.Permanent(err):
			return err
		}
		if cause := p.Wait(ctx, err); cause != nil {
			return errors.Join(cause, err)
		}
	}
}

// forms are the letter as it came, without its body, and without its headers.
func (l deadLetter) forms() []*nats.Msg {
	hops, _ := (&run.Trigger{Headers: l.header}).Hops()
	own := nats.Header{
		run.HeaderHops:                 {strconv.Itoa(hops + 1)},
		bus.HeaderReason:               {l.why.Message[:min(len(l.why.Message), maxReason)]},
		bus.HeaderCode:                 {l.why.Code},
		bus.HeaderSubject:              {l.subject},
		jetstream.ExpectedStreamHeader: {bus.StreamDeadLetter},
	}
	for name, value := range map[string]string{jetstream.MsgIDHeader: l.id, bus.HeaderTrigger: l.trigger, bus.HeaderForWait: l.forWait} {
		if value != "" {
			own.Set(name, value)
		}
	}
	all := sendersHeaders(l.header)
	maps.Copy(all, own)
	bare := maps.Clone(own)
	bare.Set(bus.HeaderNoBody, strconv.Itoa(len(l.data)))
	bodyless := maps.Clone(all)
	bodyless.Set(bus.HeaderNoBody, strconv.Itoa(len(l.data)))
	subject := bus.DeadLetterSubject(l.flow)
	return []*nats.Msg{
		{Subject: subject, Header: all, Data: l.data},
		{Subject: subject, Header: bodyless},
		{Subject: subject, Header: bare},
	}
}

// letterHeaders are the headers of a dead letter that its sender has not set.
var letterHeaders = []string{bus.HeaderReason, bus.HeaderCode, bus.HeaderSubject, bus.HeaderNoBody, bus.HeaderTrigger, bus.HeaderForWait}

// sendersHeaders are the headers that the sender of a message has set, without those
// that would be taken for a dead letter's own.
func sendersHeaders(h nats.Header) nats.Header {
	theirs := nats.Header{}
	for name, values := range ownHeaders(h) {
		if !slices.Contains(letterHeaders, name) {
			theirs[name] = values
		}
	}
	return theirs
}

func (in *Intake) publishDeadLetter(ctx context.Context, msg *nats.Msg) error {
	if err := jskit.Usable(in.nc); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, jskit.APITimeout)
	defer cancel()
	_, err := in.js.PublishMsg(ctx, msg, jetstream.WithRetryAttempts(0))
	return err
}
