package intake_test

import (
	"context"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/bus/intake"
	"github.com/flowhost/flowhost/bus/internal/bustest"
	"github.com/flowhost/flowhost/bus/natsd"
	"github.com/flowhost/flowhost/run"
)

// asker sends requests for runs that last, and counts the answers.
type asker struct {
	t     *testing.T
	nc    *nats.Conn
	inbox string
	sub   *nats.Subscription
}

func newAsker(t *testing.T, nc *nats.Conn) *asker {
	t.Helper()
	a := &asker{t: t, nc: nc, inbox: nc.NewInbox()}
	var err error
	if a.sub, err = nc.SubscribeSync(a.inbox); err != nil {
		t.Fatal(err)
	}
	return a
}

func (a *asker) ask(n int) {
	a.t.Helper()
	for range n {
		msg := &nats.Msg{Subject: "fh.v1.api.run.a", Reply: a.inbox, Data: []byte("1"), Header: nats.Header{bus.HeaderWait: {"24h"}}}
		if err := a.nc.PublishMsg(msg); err != nil {
			a.t.Fatal(err)
		}
	}
}

// busy takes an answer, which must be a refusal.
func (a *asker) busy(says string) {
	a.t.Helper()
	msg, err := a.sub.NextMsg(bustest.Patience)
	if err != nil {
		a.t.Fatal(err)
	}
	if code := msg.Header.Get("Nats-Service-Error-Code"); code != api.CodeBusy || !strings.Contains(string(msg.Data), says) {
		a.t.Errorf("%s, want busy and %q", msg.Data, says)
	}
}

func waitingHost(t *testing.T) (s *natsd.Server, dir string, waits *bustest.Starter, ended *atomic.Int64) {
	t.Helper()
	dir, ended = t.TempDir(), new(atomic.Int64)
	s = bustest.StartServer(t, natsd.Config{Dir: dir, Listen: "127.0.0.1:0"})
	waits = &bustest.Starter{OnWait: func(ctx context.Context, _ run.ID) (*run.Record, error) {
		<-ctx.Done()
		ended.Add(1)
		return nil, context.Cause(ctx)
	}}
	bustest.RunIntake(t, bustest.Connect(t, s), waits, nil, intake.Config{
		App: bustest.ConnectApp(t, s), Operator: natsd.AccountOperator, Connected: s.Connected, Waiting: 64, Grace: time.Millisecond,
	})
	return s, dir, waits, ended
}

// A connection has a share of the places to wait, clients have most of them, and the
// operator finds one.
func TestSharesOfTheWaitingRoom(t *testing.T) {
	t.Parallel()
	_, dir, waits, _ := waitingHost(t)
	const places, share, reserve = 64, 4, 8
	var clients []*asker
	for n := 0; n < places-reserve; n += share {
		c := newAsker(t, bustest.Dial(t, bustest.ReadCredentials(t, dir, natsd.ClientContext)))
		c.ask(share)
		clients = append(clients, c)
		bustest.Eventually(t, "all wait", func() bool { return len(waits.Accepted()) == n+share })
	}
	clients[0].ask(1)
	clients[0].busy("its share")
	last := newAsker(t, bustest.Dial(t, bustest.ReadCredentials(t, dir, natsd.ClientContext)))
	last.ask(1)
	last.busy("the limit")
	operator := newAsker(t, bustest.Dial(t, bustest.ReadCredentials(t, dir, natsd.OperatorContext)))
	operator.ask(reserve)
	bustest.Eventually(t, "the operator waits", func() bool { return len(waits.Accepted()) == places })
	operator.ask(1)
	operator.busy("the limit")
	// What a client says of itself counts for nothing.
	forged := &nats.Msg{Subject: "fh.v1.api.run.a", Reply: last.inbox, Header: nats.Header{
		bus.HeaderWait: {"24h"}, "Nats-Request-Info": {`{"acc":"APP","user":"operator"}`},
	}}
	if err := last.nc.PublishMsg(forged); err != nil {
		t.Fatal(err)
	}
	last.busy("the limit")
}

// The waits of a connection that is closed are given up.
func TestWaitsOfThoseWhoHaveGone(t *testing.T) {
	t.Parallel()
	s, dir, waits, ended := waitingHost(t)
	stays := newAsker(t, bustest.Dial(t, bustest.ReadCredentials(t, dir, natsd.ClientContext)))
	stays.ask(1)
	nc := bustest.Dial(t, bustest.ReadCredentials(t, dir, natsd.ClientContext))
	newAsker(t, nc).ask(4)
	bustest.Eventually(t, "all wait", func() bool { return len(waits.Accepted()) == 5 })
	nc.Close()
	bustest.Eventually(t, "four are given up", func() bool { return ended.Load() == 4 })
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	bustest.Eventually(t, "the last one is given up after a restart, whoever has its number", func() bool { return ended.Load() == 5 })
}

// A connection that does not read costs no more than the server keeps for one, and
// clients leave room for the operator's connections.
func TestConnectionsAreBounded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	bustest.StartServer(t, natsd.Config{Dir: dir, Listen: "127.0.0.1:0"})
	at := bustest.ReadCredentials(t, dir, natsd.ClientContext)
	var refused error
	for n := 0; refused == nil && n < 1000; n++ {
		nc, err := nats.Connect(at.URL, nats.UserInfo(at.User, at.Password), nats.NoReconnect())
		if refused = err; err == nil {
			t.Cleanup(nc.Close)
		}
	}
	if refused == nil || !strings.Contains(refused.Error(), "maximum") {
		t.Errorf("a thousand connections: %v", refused)
	}
	bustest.Dial(t, bustest.ReadCredentials(t, dir, natsd.OperatorContext))
}

// Wrong passwords cost little, and few lines.
func TestWrongPasswords(t *testing.T) {
	dir := t.TempDir()
	var log bustest.LogLines
	bustest.StartServer(t, natsd.Config{Dir: dir, Listen: "127.0.0.1:0", Log: log.Logger()})
	at := bustest.ReadCredentials(t, dir, natsd.ClientContext)
	try := func(user string) time.Duration {
		var before, after syscall.Rusage
		_ = syscall.Getrusage(syscall.RUSAGE_SELF, &before)
		for range 200 {
			if nc, err := nats.Connect(at.URL, nats.UserInfo(user, "wrong"), nats.NoReconnect()); err == nil {
				nc.Close()
				t.Fatal("a wrong password got in")
			}
		}
		_ = syscall.Getrusage(syscall.RUSAGE_SELF, &after)
		return time.Duration(after.Utime.Nano() - before.Utime.Nano())
	}
	nobody, client := try("nobody"), try(at.User)
	t.Logf("200 attempts: %s for a user that does not exist, %s for the client", nobody, client)
	if client > 3*nobody+100*time.Millisecond {
		t.Errorf("a wrong password costs %s, an unknown user %s", client, nobody)
	}
	if lines := log.Count("authentication error"); lines == 0 || lines > 20 {
		t.Errorf("%d lines about 400 attempts", lines)
	}
	if log.Count("laintext") > 0 {
		t.Error("the log warns of passwords")
	}
}
