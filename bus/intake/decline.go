package intake

import (
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/api"
)

// Decline answers all requests from now on that the host is stopping, until the
// connection of the intake closes. It is called before the context of Run ends: running
// attempts may last for minutes after that, in which nobody else would answer.
func (in *Intake) Decline() error {
	// In the queue group of the service, so that a request has one answer while both are
	// subscribed.
	_, err := in.nc.QueueSubscribe(bus.PrefixAPI+">", queueService, func(m *nats.Msg) {
		in.respond(inbound{nc: in.nc, reply: answerable(m.Reply), header: m.Header}, fault("", api.CodeUnavailable, errStopping.Error()))
	})
	if err == nil {
		err = in.nc.Flush()
	}
	if err != nil {
		return fmt.Errorf("answering that the host stops: %w", err)
	}
	return nil
}
