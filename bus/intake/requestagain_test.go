package intake

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/run"
)

// Whatever a stored message contains, it is a request with a key, or refused with a reason.
func FuzzRequestAgain(f *testing.F) {
	f.Add("fh.v1.deadletter.orders", "shop.a", "new", "", "", "", "", []byte(`{"a":1}`))
	f.Add("fh.v1.deadletter.orders", "fh.v1.api.run.orders", "", "", "", `{"a":2}`, "key", []byte("1"))
	f.Add("fh.v1.deadletter.orders", "fh.v1.trigger.orders", "", "", "7", "", "", []byte(nil))
	f.Add("fh.v1.deadletter.orders", "shop.a", "", "R/paid", "", "", "", []byte("1"))
	f.Add("", "fh.v1.api.run.", "\x00", "/", "-1", "[", "\xff", []byte("\xff\x00"))
	f.Fuzz(func(t *testing.T, stored, subject, trigger, forWait, noBody, params, key string, data []byte) {
		header := nats.Header{
			bus.HeaderSubject: {subject}, bus.HeaderTrigger: {trigger}, bus.HeaderForWait: {forWait}, bus.HeaderNoBody: {noBody},
			bus.HeaderParams: {params}, bus.HeaderKey: {key}, bus.HeaderCode: {"payload"}, run.HeaderHops: {"99"},
		}
		request, err := requestAgain(&jetstream.RawStreamMsg{Subject: stored, Sequence: 7, Time: time.Unix(1, 0), Header: header, Data: data})
		switch {
		case err != nil && err.Error() == "":
			t.Error("no reason")
		case err == nil && (request.Key == "" || len(request.Trigger.Payload) == 0):
			t.Errorf("%+v", request)
		}
		for _, own := range append(letterHeaders, run.HeaderHops) {
			if request.Trigger.Headers[own] != nil {
				t.Errorf("the request has header %s", own)
			}
		}
	})
}
