package e2e

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

func TestAccess(t *testing.T) {
	t.Parallel()
	h := serve(t, writeFlows(t, apiFlows), "--nats-listen", "127.0.0.1:0")
	at := h.credentials("nats-context.json")

	t.Run("files", func(t *testing.T) {
		for name, want := range map[string]os.FileMode{"": 0o700, "nats-context.json": 0o600, "nats-operator-context.json": 0o600} {
			info, err := os.Stat(filepath.Join(h.data, name))
			if err != nil {
				t.Fatal(err)
			}
			if got := info.Mode().Perm(); got != want {
				t.Errorf("%q has mode %o, want %o", name, got, want)
			}
		}
		if operator := h.credentials("nats-operator-context.json"); operator.Password == at.Password || operator.User == at.User {
			t.Error("client and operator are the same user")
		}
	})
	t.Run("strangers", func(t *testing.T) {
		for name, option := range map[string]nats.Option{
			"anonymous":      nats.Name("nobody"),
			"wrong password": nats.UserInfo(at.User, at.Password+"x"),
			"unknown user":   nats.UserInfo("engine", at.Password),
		} {
			nc, err := nats.Connect(at.URL, option)
			if err == nil {
				nc.Close()
			}
			if !errors.Is(err, nats.ErrAuthorization) {
				t.Errorf("%s: %v, want %v", name, err, nats.ErrAuthorization)
			}
		}
	})
	t.Run("client may not publish", func(t *testing.T) {
		refused := make(chan string, 100)
		c := connect(t, at.URL, nats.UserInfo(at.User, at.Password), nats.CustomInboxPrefix(at.Inbox), nats.NoReconnect(),
			nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { refused <- err.Error() }))
		for _, subject := range []string{
			"fh.v1.journal.0", "fh.v1.run.echo.x.finished", "fh.v1.deadletter.echo", "orders.created",
			"$JS.API.STREAM.CREATE.MINE", "$JS.API.STREAM.INFO.FH_JOURNAL", "$JS.API.STREAM.INFO.FH_TRIGGERS",
			"$JS.API.STREAM.UPDATE.FH_EVENTS", "$JS.API.STREAM.PURGE.FH_EVENTS", "$JS.API.STREAM.DELETE.FH_TRIGGERS",
			"$JS.API.STREAM.MSG.DELETE.FH_EVENTS", "$JS.API.CONSUMER.CREATE.FH_TRIGGERS", "$JS.API.CONSUMER.CREATE.FH_DEADLETTER",
			"$SYS.REQ.SERVER.PING", "_INBOX.somebody", "_INBOX_engine.x", "fh.v1.api.deadletters", "fh.v1.api.send_deadletter", "fh.v1.api.discard_deadletter",
		} {
			if err := c.nc.Publish(subject, []byte("{}")); err != nil {
				t.Fatal(err)
			}
			expectRefusal(t, refused, "publish", subject)
		}
		for _, subject := range []string{">", "fh.v1.>", "fh.v1.trigger.>", "fh.v1.api.run.echo", "$JS.>", "_INBOX.>", "_INBOX_engine.>", "_INBOX_operator.>"} {
			if _, err := c.nc.SubscribeSync(subject); err != nil {
				t.Fatal(err)
			}
			expectRefusal(t, refused, "subscription", subject)
		}
	})
	t.Run("operator sees no stream of the engine", func(t *testing.T) {
		c := h.operator().with(t)
		if _, err := c.js.Stream(t.Context(), "FH_EVENTS"); err != nil {
			t.Error(err)
		}
		for _, name := range []string{"FH_JOURNAL", "FH_TRIGGERS", "FH_HISTORY", "FH_LOGS", "FH_DEADLETTER"} {
			if _, err := c.js.Stream(t.Context(), name); !errors.Is(err, jetstream.ErrStreamNotFound) {
				t.Errorf("%s: %v, want %v", name, err, jetstream.ErrStreamNotFound)
			}
		}
	})
	t.Run("all that was tried did no harm", func(t *testing.T) {
		if r := h.client().with(t).result("fh.v1.api.run.echo", "1"); r.State != "succeeded" {
			t.Errorf("%+v", r)
		}
	})
	t.Run("one process for each data folder", func(t *testing.T) {
		if text, code := runToEnd(t, "run", h.flows, "--data", h.data); code != 4 || !strings.Contains(text, h.data) {
			t.Errorf("exit code %d, want 4 and the folder's name in:\n%s", code, text)
		}
	})
}

// expectRefusal waits for the server's answer to something forbidden.
func expectRefusal(t *testing.T, refused <-chan string, what, subject string) {
	t.Helper()
	select {
	case got := <-refused:
		if got = strings.ToLower(got); !strings.Contains(got, "permissions violation for "+what) || !strings.Contains(got, `"`+strings.ToLower(subject)+`"`) {
			t.Errorf("%s on %s: %s", what, subject, got)
		}
	case <-time.After(patience):
		t.Fatalf("%s on %s is not refused", what, subject)
	}
}
