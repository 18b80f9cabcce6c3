package e2e

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// configured starts a server with the configuration that the program prints for the
// flows, and gives its address and the directory of the keys.
func configured(t *testing.T, flows string) (url, keys string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	dir := t.TempDir()
	keys, url = filepath.Join(dir, "keys"), fmt.Sprintf("nats://127.0.0.1:%d", port)
	cmd := command("nats", "config", flows, "--keys", keys, "--nats", url)
	printed, err := cmd.Output()
	if err != nil {
		t.Fatalf("nats config: %v", err)
	}
	again, err := command("nats", "config", flows, "--keys", keys).Output()
	if err != nil || string(again) != string(printed) {
		t.Errorf("with the same keys it prints something else: %v\n%s", err, again)
	}
	if regexp.MustCompile(`\bSU[A-Z2-7]{50}`).Match(printed) {
		t.Error("the configuration holds a seed")
	}
	file := filepath.Join(dir, "server.conf")
	text := fmt.Sprintf("listen: \"127.0.0.1:%d\"\njetstream { store_dir: %q }\n%s", port, filepath.Join(dir, "store"), printed)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	opts, err := server.ProcessConfigFile(file)
	if err != nil {
		t.Fatalf("%v in\n%s", err, printed)
	}
	opts.NoSigs, opts.NoLog = true, true
	ns, err := server.NewServer(opts)
	if err != nil {
		t.Fatal(err)
	}
	ns.Start()
	t.Cleanup(func() { ns.Shutdown(); ns.WaitForShutdown() })
	if !ns.ReadyForConnections(patience) {
		t.Fatal("the server does not start")
	}
	return url, keys
}

// enter connects with a seed.
func enter(t *testing.T, url, keys, user, inbox string) *client {
	t.Helper()
	by, err := nats.NkeyOptionFromSeed(filepath.Join(keys, user))
	if err != nil {
		t.Fatal(err)
	}
	return connect(t, url, by, nats.CustomInboxPrefix(inbox), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
}

const separateFlows = apiFlows + `
flow "heard" {
  trigger "message" "new" {
    subject = "orders.new"
  }
  task "echo" {
    plugin   = "./unruly.wasm"
    function = "echo"
    input    = trigger.payload
  }
}
`

// TestSeparateAccounts serves flows on a server of somebody else's with the printed
// configuration: everything works, and no reply subject reaches a stream.
func TestSeparateAccounts(t *testing.T) {
	t.Parallel()
	flows := writeFlows(t, separateFlows)
	url, keys := configured(t, flows)
	h := serve(t, flows, "--nats", url, "--creds", filepath.Join(keys, "engine.nk"), "--app-creds", filepath.Join(keys, "engine-app.nk"))
	c, operator := enter(t, url, keys, "client.nk", "_INBOX_client"), enter(t, url, keys, "operator.nk", "_INBOX_operator")
	engine := enter(t, url, keys, "engine.nk", "_INBOX_engine")
	follow := c.subscribe("fh.v1.run.>")

	for _, subject := range []string{"fh.v1.api.run.echo", "orders.new"} {
		if r := c.result(subject, `"text"`); r.State != "succeeded" {
			t.Errorf("%s: %+v", subject, r)
		}
	}
	follow.finished("")
	if ack, err := c.js.Publish(t.Context(), "fh.v1.trigger.echo", []byte(`"durable"`)); err != nil || ack.Stream != "FH_TRIGGERS" {
		t.Errorf("%+v, %v", ack, err)
	}
	follow.finished("")
	if answer := c.request("fh.v1.api.run.nothing", "1", nats.Header{"X-Case": {"unknown"}}); answer.Header.Get("Nats-Service-Error-Code") != "unknown_flow" {
		t.Errorf("%s", answer.Data)
	}
	if letter := operator.deadLetter("nothing", "X-Case", "unknown"); letter.Body != "1" {
		t.Errorf("%+v", letter)
	}
	if text, code := runToEnd(t, "runs", "--nats", url, "--creds", filepath.Join(keys, "nats-context.json")); code != 0 || !strings.Contains(text, "echo") {
		t.Errorf("runs with the client's context: exit code %d:\n%s", code, text)
	}

	state := func() map[string]string {
		all := map[string]string{}
		streams := engine.js.ListStreams(t.Context())
		for info := range streams.Info() {
			if !slices.Contains([]string{"FH_TRIGGERS", "FH_JOURNAL", "FH_MARKS"}, info.Config.Name) {
				all[info.Config.Name] = fmt.Sprintf("%+v %d", info.Config, info.State.FirstSeq)
			}
		}
		if err := streams.Err(); err != nil {
			t.Fatal(err)
		}
		return all
	}
	before := state()
	var tricks []string
	for _, name := range []string{"FH_JOURNAL", "FH_TRIGGERS", "FH_HISTORY", "FH_DEADLETTER", "FH_LOGS", "FH_EVENTS", "OBJ_FH_BLOBS"} {
		for _, call := range []string{"PURGE", "DELETE", "UPDATE", "CREATE", "MSG.DELETE", "SNAPSHOT", "RESTORE"} {
			tricks = append(tricks, "$JS.API.STREAM."+call+"."+name)
		}
	}
	tricks = append(tricks, "fh.v1.journal.0", "fh.v1.history.a.failed", "fh.v1.deadletter.a", "_INBOX_engine.x", "_INBOX_operator.x", "_R_.a.b")
	for _, from := range []*client{c, operator} {
		for _, trick := range tricks {
			if from == operator && strings.HasSuffix(trick, "FH_EVENTS") {
				continue // it is in the operator's own account
			}
			for _, subject := range []string{"orders.new", "fh.v1.trigger.heard", "fh.v1.api.run.heard", "fh.v1.api.list"} {
				if err := from.nc.PublishRequest(subject, trick, []byte("{}")); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	for _, from := range []*client{c, operator} {
		if r := from.result("fh.v1.api.run.echo", "1"); r.State != "succeeded" {
			t.Errorf("%+v", r)
		}
	}
	after := state()
	for name, was := range before {
		if after[name] != was {
			t.Errorf("%s was\n%s\nand is\n%s", name, was, after[name])
		}
	}
	for _, name := range []string{"FH_JOURNAL", "FH_HISTORY", "FH_TRIGGERS"} {
		if _, err := operator.js.Stream(t.Context(), name); !errors.Is(err, jetstream.ErrStreamNotFound) {
			t.Errorf("the operator sees %s: %v", name, err)
		}
	}
	h.stop()
	if text := h.output.all(); strings.Contains(text, "share one NATS account") {
		t.Errorf("the host warns:\n%s", text)
	}
}

// TestOneAccount states what a server without accounts cannot protect.
func TestOneAccount(t *testing.T) {
	t.Parallel()
	e := newExternal(t)
	e.start()
	h := serve(t, writeFlows(t, apiFlows), "--nats", e.url(externalUser+":"+externalPassword+"@"))
	h.stop()
	if text := h.output.all(); strings.Count(text, "share one NATS account") != 1 {
		t.Errorf("the host does not warn once:\n%s", text)
	}
	text, code := runToEnd(t, "run", h.flows, "--data", t.TempDir(), "--nats", e.url(externalUser+":"+externalPassword+"@"), "--app-creds", filepath.Join(configuredKeys(t, h.flows), "engine-app.nk"))
	if code != 4 {
		t.Errorf("exit code %d, want 4:\n%s", code, text)
	}
}

func configuredKeys(t *testing.T, flows string) string {
	t.Helper()
	keys := filepath.Join(t.TempDir(), "keys")
	if text, code := runToEnd(t, "nats", "config", flows, "--keys", keys); code != 0 {
		t.Fatalf("exit code %d:\n%s", code, text)
	}
	return keys
}

// TestStreamsThatVanish removes streams while a host runs: it makes those again that
// runs do not depend on, and ends without the journal.
func TestStreamsThatVanish(t *testing.T) {
	t.Parallel()
	flows := writeFlows(t, apiFlows)
	url, keys := configured(t, flows)
	h := serve(t, flows, "--nats", url, "--creds", filepath.Join(keys, "engine.nk"), "--app-creds", filepath.Join(keys, "engine-app.nk"))
	c := enter(t, url, keys, "client.nk", "_INBOX_client")
	engine, app := enter(t, url, keys, "engine.nk", "_INBOX_engine"), enter(t, url, keys, "engine-app.nk", "_INBOX_engine")
	c.result("fh.v1.api.run.echo", "1")
	for from, names := range map[*client][]string{engine: {"FH_TRIGGERS", "FH_HISTORY", "FH_LOGS", "FH_DEADLETTER"}, app: {"FH_EVENTS"}} {
		for _, name := range names {
			if err := from.js.DeleteStream(t.Context(), name); err != nil {
				t.Fatal(err)
			}
		}
	}
	c.result("fh.v1.api.run.echo", "2")
	await := func(from *client, name string) {
		t.Helper()
		for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
			if _, err := from.js.Stream(t.Context(), name); err == nil {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("%s is not made again", name)
			}
		}
	}
	for _, name := range []string{"FH_TRIGGERS", "FH_HISTORY", "FH_LOGS", "FH_DEADLETTER"} {
		await(engine, name)
	}
	await(app, "FH_EVENTS")
	follow := c.subscribe("fh.v1.run.echo.>")
	if _, err := c.js.Publish(t.Context(), "fh.v1.trigger.echo", []byte(`"again"`)); err != nil {
		t.Fatal(err)
	}
	all := follow.finished("")
	if last := all[len(all)-1]; last.Record == nil || last.Record.State != "succeeded" {
		t.Errorf("%+v", last)
	}
	h.stop()
	text := h.output.all()
	for _, name := range []string{"FH_TRIGGERS", "FH_HISTORY", "FH_LOGS", "FH_DEADLETTER", "FH_EVENTS"} {
		if !slices.ContainsFunc(strings.Split(text, "\n"), func(line string) bool {
			return strings.Contains(line, "ERROR") && strings.Contains(line, "stream="+name)
		}) {
			t.Errorf("no ERROR about %s:\n%s", name, text)
		}
	}

	h.start()
	h.await(" serves ")
	if err := engine.js.DeleteStream(t.Context(), "FH_JOURNAL"); err != nil {
		t.Fatal(err)
	}
	within(t, "the end of a host without its journal", h.ended)
	if text := h.output.all(); !strings.Contains(text, "stream FH_JOURNAL: somebody has removed it") {
		t.Errorf("%s", text)
	}
}
