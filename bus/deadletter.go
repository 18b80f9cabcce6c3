package bus

import (
	"context"
	"errors"
	"maps"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/flowhost/flowhost/run"
)

// letter is a message that cannot make a run.
type letter struct {
	inbound
	flow string
	why  *run.RequestError
	id   string // known for messages of streams, so that they are kept once only
}

// maxReason bounds the header Fh-Reason, in bytes: a stream takes no message whose
// headers are over 64 KiB.
const maxReason = 4 << 10

// bury stores a dead letter, as often as it takes until ctx ends. What does not fit
// is left out: first the body, then the original headers too.
func (in *Intake) bury(ctx context.Context, l letter) error {
	if l.why.Code == run.RequestLoop {
		in.log.Error("a message starts no run", "flow", l.flow, "subject", l.subject, "reason", l.why)
		if l.header.Get(HeaderCode) != "" {
			return nil // it is a dead letter, and kept already
		}
	}
	forms := l.forms()
	p := patience{log: in.log, what: "store a dead letter"}
	for {
		err := in.store(ctx, forms[0])
		switch {
		case err == nil:
			p.done()
			return nil
		case errors.Is(err, nats.ErrConnectionClosed):
			return err
		case lasting(err) && len(forms) > 1:
			forms = forms[1:]
			continue
		case lasting(err):
			return err
		}
		if cause := p.wait(ctx, err); cause != nil {
			return errors.Join(cause, err)
		}
	}
}

// forms are the letter as it came, without its body, and without its headers.
func (l letter) forms() []*nats.Msg {
	hops, _ := (&run.Trigger{Headers: l.header}).Hops()
	own := nats.Header{
		run.HeaderHops:                 {strconv.Itoa(hops + 1)},
		HeaderReason:                   {l.why.Message[:min(len(l.why.Message), maxReason)]},
		HeaderCode:                     {l.why.Code},
		HeaderSubject:                  {l.subject},
		jetstream.ExpectedStreamHeader: {StreamDeadLetter},
	}
	if l.id != "" {
		own.Set(jetstream.MsgIDHeader, l.id)
	}
	all := nats.Header(ownHeaders(l.header))
	if all == nil {
		all = nats.Header{}
	}
	maps.Copy(all, own)
	bare := maps.Clone(own)
	bare.Set(HeaderNoBody, strconv.Itoa(len(l.data)))
	bodyless := maps.Clone(all)
	bodyless.Set(HeaderNoBody, strconv.Itoa(len(l.data)))
	subject := DeadLetterSubject(l.flow)
	return []*nats.Msg{
		{Subject: subject, Header: all, Data: l.data},
		{Subject: subject, Header: bodyless},
		{Subject: subject, Header: bare},
	}
}

func (in *Intake) store(ctx context.Context, msg *nats.Msg) error {
	if err := usable(in.nc); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	_, err := in.js.PublishMsg(ctx, msg, jetstream.WithRetryAttempts(0))
	return err
}
