package intake_test

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/intake"
	"github.com/flowhost/flowhost/bus/internal/bustest"
	"github.com/flowhost/flowhost/bus/natsd"
	"github.com/flowhost/flowhost/run"
)

// slowControl answers a list of the flow "slow" when it is let go.
type slowControl struct {
	*bustest.Control
	began chan struct{}
	gate  chan struct{}
}

func (c *slowControl) List(ctx context.Context, q run.Query) (run.Page, error) {
	if q.Flow == "slow" {
		c.began <- struct{}{}
		select {
		case <-c.gate:
		case <-ctx.Done():
		}
	}
	return run.Page{}, nil
}

// A connection that asks for much, reading or changing, keeps neither other clients nor
// the operator from an answer.
func TestFloodsDelayNobodyElse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := bustest.StartServer(t, natsd.Config{Dir: dir, Listen: "127.0.0.1:0"})
	began, gate := make(chan struct{}, 10_000), make(chan struct{})
	starts := &bustest.Starter{OnSubmit: func(r run.Request) error {
		if r.Flow == "slow" {
			began <- struct{}{}
			<-gate
		}
		return nil
	}}
	bustest.RunIntake(t, bustest.Connect(t, s), starts, nil, intake.Config{
		App: bustest.ConnectApp(t, s), Operator: natsd.AccountOperator, Connected: s.Connected,
		Control: &slowControl{bustest.NewControl(), began, gate}, Submitting: 8, Reading: 8, Grace: time.Millisecond,
	})
	flood := func(subject, body string) *nats.Conn {
		nc := bustest.Dial(t, bustest.ReadCredentials(t, dir, natsd.ClientContext))
		for range 2000 {
			if err := nc.PublishMsg(&nats.Msg{Subject: subject, Reply: nc.NewInbox(), Data: []byte(body)}); err != nil {
				t.Fatal(err)
			}
		}
		return nc
	}
	const verb, slow = "fh.v1.api.list", `{"flow":"slow"}`
	flood(verb, slow)
	flood("fh.v1.api.run.slow", "1")
	for range 8 {
		<-began // each has four of eight places
	}
	for _, who := range []string{natsd.ClientContext, natsd.OperatorContext} {
		nc := bustest.Dial(t, bustest.ReadCredentials(t, dir, who))
		for range 3 {
			for _, subject := range []string{verb, "fh.v1.api.run.quick"} {
				body, code := bustest.Request(t, nc, subject, "{}", nil)
				if code != "" {
					t.Errorf("%s, %s: %s", who, subject, body)
				}
			}
		}
	}
	flood(verb, slow)
	for range 3 { // all places of clients are taken
		<-began
	}
	if body, code := bustest.Request(t, bustest.Dial(t, bustest.ReadCredentials(t, dir, natsd.OperatorContext)), verb, "{}", nil); code != "" {
		t.Errorf("the operator: %s", body)
	}
	close(gate)
}

// A request that takes no values has a small body.
func TestBodiesAreBounded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := bustest.StartServer(t, natsd.Config{Dir: dir, Listen: "127.0.0.1:0"})
	bustest.RunIntake(t, bustest.Connect(t, s), &bustest.Starter{}, nil, apiConfig(bustest.NewControl(), newLines()))
	nc := bustest.Dial(t, bustest.ReadCredentials(t, dir, natsd.ClientContext))
	large := `{"run":"` + strings.Repeat("x", 64<<10) + `"}`
	for _, verb := range []string{"list", "get", "watch", "logs", "cancel"} {
		if body, code := bustest.Request(t, nc, "fh.v1.api."+verb, large, nil); code != run.RequestPayload || !strings.Contains(body, "65536") {
			t.Errorf("%s: %s, %.100s", verb, code, body)
		}
	}
	if body, code := bustest.Request(t, nc, "fh.v1.api.retry", large, nil); code != run.RequestParams {
		t.Errorf("retry: %s, %.100s", code, body)
	}
}

// An answer counts as one hop more: the reply subject may be one to which a flow
// listens, even the message's own.
func TestAnswersCountAsHops(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := bustest.StartServer(t, natsd.Config{Dir: dir, Listen: "127.0.0.1:0"})
	starts := &bustest.Starter{}
	app := bustest.ConnectApp(t, s)
	bustest.RunIntake(t, bustest.Connect(t, s), starts, []intake.Subscription{{Flow: "a", Trigger: "in", Subject: "orders.new"}}, intake.Config{App: app, Grace: time.Second})
	nc := bustest.Dial(t, bustest.ReadCredentials(t, dir, natsd.OperatorContext))
	for i, ask := range []struct {
		subject, hops, want string
	}{
		{"orders.new", "", "1"}, {"orders.new", "4", "5"}, {"fh.v1.api.run.b", "7", "8"},
	} {
		for _, wait := range []string{"", "20s"} {
			msg := &nats.Msg{Subject: ask.subject, Reply: "orders.new", Data: []byte("1"), Header: nats.Header{}}
			if wait != "" {
				msg.Header.Set(bus.HeaderWait, wait)
			}
			if ask.hops != "" {
				msg.Header.Set(run.HeaderHops, ask.hops)
			}
			before := len(starts.Accepted())
			if err := nc.PublishMsg(msg); err != nil {
				t.Fatal(err)
			}
			what := fmt.Sprintf("%d: the message and its answer start runs", i)
			bustest.Eventually(t, what, func() bool { return len(starts.Accepted()) == before+2 })
			answer := starts.Accepted()[before+1].Trigger
			if got := strings.Join(answer.Headers[run.HeaderHops], ","); got != ask.want {
				t.Errorf("%s after %q: the answer has %q hops, want %q", ask.subject, ask.hops, got, ask.want)
			}
		}
	}
}

// Strangers who connect and say nothing are sent away, and leave room for others.
func TestConnectionsThatSayNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	bustest.StartServer(t, natsd.Config{Dir: dir, Listen: "127.0.0.1:0"})
	at := bustest.ReadCredentials(t, dir, natsd.ClientContext)
	target, err := url.Parse(at.URL)
	if err != nil {
		t.Fatal(err)
	}
	var last net.Conn
	for range 300 {
		if last, err = net.Dial("tcp", target.Host); err != nil {
			t.Fatal(err)
		}
		defer last.Close()
	}
	bustest.Dial(t, at)
	last.SetReadDeadline(time.Now().Add(bustest.Patience))
	text := make([]byte, 4096)
	for err == nil {
		_, err = last.Read(text)
	}
	if nerr, ok := err.(net.Error); ok && nerr.Timeout() {
		t.Error("a connection that says nothing stays")
	}
}
