package intake

import (
	"context"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/internal/jskit"
)

// trimmer removes decided messages from FH_TRIGGERS, which would fill up
// otherwise. It leaves them for some time, so that the server still knows their
// ids when a publisher repeats one.
type trimmer struct {
	stream jetstream.Stream
	log    *slog.Logger
	every  time.Duration

	last time.Time // when the sequence below was noted
	seq  uint64    // decided by then, to be removed next
}

// decided notes that all messages up to the sequence are decided, and now and then
// removes those that were so the time before.
func (t *trimmer) decided(ctx context.Context, seq uint64) {
	if time.Since(t.last) < t.every {
		return
	}
	if t.seq > 0 {
		ctx, cancel := context.WithTimeout(ctx, jskit.APITimeout)
		defer cancel()
		if err := t.stream.Purge(ctx, jetstream.WithPurgeSequence(t.seq+1)); err != nil {
			t.log.Warn("decided messages could not be removed", "stream", bus.StreamTriggers, "error", err)
		}
	}
	t.last, t.seq = time.Now(), seq
}
