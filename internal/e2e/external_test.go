package e2e

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	externalUser     = "someone"
	externalPassword = "not-to-be-shown"
)

// external is a NATS server of somebody else's, which keeps its address over
// restarts.
type external struct {
	t    *testing.T
	opts server.Options
	ns   *server.Server
}

func newExternal(t *testing.T) *external {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	e := &external{t: t, opts: server.Options{
		Host: "127.0.0.1", Port: l.Addr().(*net.TCPAddr).Port, NoSigs: true, NoLog: true,
		Username: externalUser, Password: externalPassword,
		JetStream: true, StoreDir: t.TempDir(), JetStreamMaxStore: 1 << 40, JetStreamMaxMemory: 1 << 30,
	}}
	t.Cleanup(e.stop)
	return e
}

func (e *external) start() {
	e.t.Helper()
	opts := e.opts
	ns, err := server.NewServer(&opts)
	if err != nil {
		e.t.Fatal(err)
	}
	e.ns = ns
	ns.Start()
	if !ns.ReadyForConnections(patience) {
		e.t.Fatal("the external server does not start")
	}
}

func (e *external) stop() {
	if e.ns != nil {
		e.ns.Shutdown()
		e.ns.WaitForShutdown()
		e.ns = nil
	}
}

func (e *external) url(userinfo string) string {
	return fmt.Sprintf("nats://%s127.0.0.1:%d", userinfo, e.opts.Port)
}

// TestExternalServer restarts the NATS server on which a host works, while
// messages come: what the server has acknowledged makes its run, once.
func TestExternalServer(t *testing.T) {
	t.Parallel()
	e := newExternal(t)
	e.start()
	h := serve(t, writeFlows(t, apiFlows), "--nats", e.url(externalUser+":"+externalPassword+"@"))
	c := connect(t, e.url(""), nats.UserInfo(externalUser, externalPassword),
		nats.MaxReconnects(-1), nats.ReconnectWait(10*time.Millisecond))
	before := c.submit("fh.v1.api.run.echo", `{}`)

	const enough = 40
	book := &ledger{}
	reached := book.round(0, enough)
	publishing, stop := context.WithCancel(t.Context())
	defer stop()
	published := make(chan struct{})
	go func() {
		defer close(published)
		book.publish(publishing, c)
	}()
	within(t, "messages are acknowledged", reached)
	e.stop()
	h.await("waiting to ")
	reached = book.round(0, enough)
	e.start()
	within(t, "messages are acknowledged again", reached)
	h.await("connected to NATS again")
	after := c.submit("fh.v1.api.run.echo", `{}`)
	stop()
	within(t, "the end of publishing", published)
	ends := collect(c, book, []string{before, after})
	h.stop()
	if text := h.output.all(); strings.Contains(text, externalPassword) {
		t.Error("the program shows the password")
	}
	t.Logf("%d messages, %d runs in all", len(book.messages), len(ends))
}

// publish sends messages for flow echo, each until it is acknowledged, until ctx
// ends. It is slow enough for the host to keep up.
func (l *ledger) publish(ctx context.Context, c *client) {
	pace := time.NewTicker(5 * time.Millisecond)
	defer pace.Stop()
	for n := 0; ; n++ {
		<-pace.C
		marker := fmt.Sprint("m", n)
		msg := &nats.Msg{Subject: "fh.v1.trigger.echo", Data: []byte(`{"marker":"` + marker + `"}`)}
		for acknowledged := false; !acknowledged; {
			if ctx.Err() != nil {
				return
			}
			one, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
			_, err := c.js.PublishMsg(one, msg, jetstream.WithMsgID(marker))
			cancel()
			acknowledged = err == nil
		}
		l.enter(&l.messages, marker)
	}
}

// TestExternalServerAbsent starts a host before the server that it is to use.
func TestExternalServerAbsent(t *testing.T) {
	t.Parallel()
	e := newExternal(t)
	h := &host{t: t, flows: writeFlows(t, apiFlows), data: t.TempDir(), args: []string{"--nats", e.url(externalUser + ":" + externalPassword + "@")}}
	t.Cleanup(h.finish)
	h.start()
	h.await("waiting to connect to NATS")
	e.start()
	h.await(" serves ")
	c := connect(t, e.url(""), nats.UserInfo(externalUser, externalPassword))
	if r := c.result("fh.v1.api.run.echo", "1"); r.State != "succeeded" {
		t.Errorf("%+v", r)
	}
}

// TestExternalServerRefuses expects an end, not a wait, when the credentials are
// wrong.
func TestExternalServerRefuses(t *testing.T) {
	t.Parallel()
	e := newExternal(t)
	e.start()
	text, code := runToEnd(t, "run", writeFlows(t, apiFlows), "--data", t.TempDir(), "--nats", e.url(externalUser+":wrong@"))
	if code != 4 || !strings.Contains(text, "Authorization Violation") {
		t.Errorf("exit code %d, want 4 and the reason in:\n%s", code, text)
	}
}

// TestServerForgetsAll gives the server an empty store while the host is down: the data
// directory knows of a journal, so the host refuses to begin another one.
func TestServerForgetsAll(t *testing.T) {
	t.Parallel()
	e := newExternal(t)
	e.start()
	flows, data, url := writeFlows(t, apiFlows), t.TempDir(), e.url(externalUser+":"+externalPassword+"@")
	h := serve(t, flows, "--data", data, "--nats", url)
	connect(t, e.url(""), nats.UserInfo(externalUser, externalPassword)).submit("fh.v1.api.run.echo", `{}`)
	h.stop()
	e.stop()
	e.opts.StoreDir = t.TempDir()
	e.start()
	text, code := runToEnd(t, "run", flows, "--data", data, "--nats", url)
	if code != 1 || !strings.Contains(text, "has lost its end") || !strings.Contains(text, "--accept-loss") {
		t.Errorf("exit code %d:\n%s", code, text)
	}
	serve(t, flows, "--data", data, "--nats", url, "--accept-loss").stop()
	serve(t, flows, "--data", data, "--nats", url).stop()
}

// TestSecondHost starts a second host on the same journal: it is refused with the owner's
// name, and starts by itself once the owner is dead.
func TestSecondHost(t *testing.T) {
	t.Parallel()
	e := newExternal(t)
	e.start()
	flows, url := writeFlows(t, apiFlows), e.url(externalUser+":"+externalPassword+"@")
	first := serve(t, flows, "--nats", url)
	text, code := runToEnd(t, "run", flows, "--data", t.TempDir(), "--nats", url)
	owner := fmt.Sprintf(", process %d, since ", first.cmd.Process.Pid)
	if code != 4 || !strings.Contains(text, "another host uses the journal on this NATS server: flowhost on ") || !strings.Contains(text, owner) {
		t.Errorf("exit code %d, want 4 and the owner in:\n%s", code, text)
	}
	c := connect(t, e.url(""), nats.UserInfo(externalUser, externalPassword))
	if r := c.result("fh.v1.api.run.echo", "1"); r.State != "succeeded" {
		t.Errorf("the first host does not work any more: %+v", r)
	}
	first.kill()
	second := serve(t, flows, "--nats", url)
	second.await("the journal has an owner: waiting to see whether it is still there")
	if r := c.result("fh.v1.api.run.echo", "1"); r.State != "succeeded" {
		t.Errorf("%+v", r)
	}
	second.stop()
}
