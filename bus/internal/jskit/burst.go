package jskit

import (
	"context"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// leastBurst is how many messages are worth it.
const leastBurst = 4

// Burst publishes messages of one stream and has only the first and the last of them
// acknowledged: an acknowledgement takes as long as all the rest of a small message. A
// server stores the messages of a connection in order. When as many sequences as
// messages lie between the two that are acknowledged, and nobody else writes to the
// stream, all are stored, and Burst returns the acknowledgement that each would have got.
//
// Otherwise it returns nil, and some may be stored: they must have ids, by which the
// stream knows them when all are sent again.
func Burst(ctx context.Context, js jetstream.JetStream, messages []*nats.Msg) []*jetstream.PubAck {
	n := len(messages)
	if n < leastBurst {
		return nil
	}
	nc := js.Conn()
	first, err := js.PublishMsgAsync(messages[0], jetstream.WithRetryAttempts(0))
	if err != nil {
		return nil
	}
	for _, msg := range messages[1 : n-1] {
		if err := nc.PublishMsg(msg); err != nil {
			break // the sequences will not fit
		}
	}
	last, err := js.PublishMsgAsync(messages[n-1], jetstream.WithRetryAttempts(0))
	if err != nil {
		return nil
	}
	acks, err := await(ctx, []jetstream.PubAckFuture{first, last})
	if err != nil || acks[0].Duplicate || acks[1].Duplicate || acks[1].Sequence-acks[0].Sequence != uint64(n-1) {
		return nil
	}
	stored, all := make([]jetstream.PubAck, n), make([]*jetstream.PubAck, n)
	for i := range stored {
		stored[i] = *acks[0]
		stored[i].Sequence += uint64(i)
		all[i] = &stored[i]
	}
	return all
}
