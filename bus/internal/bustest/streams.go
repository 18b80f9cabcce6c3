package bustest

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

type Limits struct {
	Discard  jetstream.DiscardPolicy
	Bytes    int64
	Message  int32
	Age      time.Duration
	Replicas int
	Window   time.Duration
	Subjects []string
}

func StreamLimits(t *testing.T, nc *nats.Conn, name string) Limits {
	t.Helper()
	stream, err := JetStream(t, nc).Stream(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	c := stream.CachedInfo().Config
	if c.Retention != jetstream.LimitsPolicy || c.Storage != jetstream.FileStorage {
		t.Errorf("%s: retention %v, storage %v", name, c.Retention, c.Storage)
	}
	return Limits{c.Discard, c.MaxBytes, c.MaxMsgSize, c.MaxAge, c.Replicas, c.Duplicates, c.Subjects}
}
