package ops

import (
	"context"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/flowhost/flowhost/bus/internal/jskit"
)

// Pauses before a message is sent again that a busy server has refused.
const (
	firstPause = 2 * time.Millisecond
	maxPause   = 100 * time.Millisecond
)

// Publish has a stream store a message, within a time. It sends it again only when the
// server says that it has not been stored because too many others wait: whatever else is
// repeated could be stored twice.
func Publish(ctx context.Context, js jetstream.JetStream, msg *nats.Msg, timeout time.Duration, opts ...jetstream.PublishOpt) (*jetstream.PubAck, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	opts = append(opts, jetstream.WithRetryAttempts(0))
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		ack, err := js.PublishMsg(ctx, msg, opts...)
		if !jskit.IsBusy(err) {
			return ack, err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, err
		}
	}
}
