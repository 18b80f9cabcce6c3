package e2e

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/nats-io/nats.go"
)

// site is a directory with flows, settings and the modules that flows use.
func site(t testing.TB, flows, settings string) string {
	t.Helper()
	dir := writeFlows(t, flows)
	if err := os.WriteFile(filepath.Join(dir, "flowhost.hcl"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// apiOf is the settings of a connection to a server of the test.
func apiOf(server *httptest.Server, more string) string {
	return fmt.Sprintf("connection \"api\" {\n  type = \"http\"\n  base_url = %q\n  allow = [\"GET /**\"]\n%s\n}\n", server.URL, more)
}

// The example reads its API page by page, within its rate limit, into a database, and says
// so.
func TestETL(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	api := filepath.Join(dir, "api")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", api, root+"/examples/etl/api").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	shop := startShop(t, api)
	flows := filepath.Join(dir, "flows")
	if err := os.CopyFS(filepath.Join(flows, "etl"), os.DirFS(filepath.Join(built.examples, "etl"))); err != nil {
		t.Fatal(err)
	}
	settings, err := os.ReadFile(filepath.Join(root, "examples/flowhost.hcl"))
	if err != nil {
		t.Fatal(err)
	}
	settings = bytes.ReplaceAll(settings, []byte("http://127.0.0.1:8321"), []byte(shop))
	if err := os.WriteFile(filepath.Join(flows, "flowhost.hcl"), settings, 0o600); err != nil {
		t.Fatal(err)
	}
	h := serve(t, flows, "--nats-listen", "127.0.0.1:0")
	c, operator := h.client(), h.operator()
	loaded, err := operator.nc.SubscribeSync("etl.loaded")
	if err == nil {
		err = operator.nc.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second run replaces what the first has written
		r := c.result("etl.load", "")
		if r.State != "succeeded" || string(r.Output) != `{"loaded":{"orders":86,"cents":172500}}` {
			t.Fatalf("%s %s %s", r.State, r.Output, r.Error)
		}
		m, err := loaded.NextMsg(patience)
		if err != nil || string(m.Data) != `{"orders":86,"cents":172500}` {
			t.Errorf("the message was %+v, %v", m, err)
		}
	}
}

// Tasks that wait for an answer hold no computing place: all are at the server at once,
// although only two may compute.
func TestWaitingIsNotComputing(t *testing.T) {
	t.Parallel()
	const tasks = 200
	var mu sync.Mutex
	waiting, all := 0, make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		if waiting++; waiting == tasks {
			close(all)
		}
		mu.Unlock()
		select {
		case <-all:
			fmt.Fprint(w, "all")
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(server.Close)
	h := serve(t, site(t, fmt.Sprintf(`
flow "wait" {
  task "ask" {
    plugin   = "./reach.wasm"
    function = "fetch"
    for_each = range(%d)
    input    = { connection = "api", url = "/wait" }

    grant {
      connections = [connection.api]
    }
    limits {
      memory = "14MiB"
    }
  }
}
`, tasks), "workers = 2\nin_flight = 300\n"+apiOf(server, fmt.Sprintf("limit {\n concurrency = %d\n}", tasks))), "--nats-listen", "127.0.0.1:0")
	r := h.client().result("fh.v1.api.run.wait", "")
	if r.State != "succeeded" || strings.Count(string(r.Output), `"all"`) != tasks {
		t.Errorf("%s %s", r.State, r.Error)
	}
}

// A secret that is used in every kind of place is nowhere to be found afterwards, in no form,
// but where it was sent.
func TestCanary(t *testing.T) {
	t.Parallel()
	const canary = "c4nary-Zq8/vW+2mK"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Echo", r.Header.Get("Authorization"))
		fmt.Fprint(w, "you sent ", r.Header.Get("Authorization"))
	}))
	t.Cleanup(server.Close)
	secret := filepath.Join(t.TempDir(), "canary")
	if err := os.WriteFile(secret, []byte(canary+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	task := func(name, how string) string {
		return fmt.Sprintf(`
  task %q {
    plugin   = "./reach.wasm"
    function = "leak"
    input    = %q
    on_error = "continue"

    grant {
      connections = [connection.api]
      secrets     = { token = secret.canary }
      kv          = { bin = "rw" }
      publish     = ["leaks.*"]
      artifacts   = true
    }
  }
`, name, how)
	}
	settings := fmt.Sprintf("secret \"canary\" {\n  file = %q\n}\n", secret) + apiOf(server, "auth {\n  bearer = secret.canary\n}") + `
allow "*" {
  connections = ["*"]
  secrets     = ["canary"]
  kv          = { bin = "rw" }
  publish     = ["leaks.*"]
  artifacts   = true
}
`
	dir := site(t, "flow \"leak\" {\n"+task("output", "")+task("fails", "error")+task("panics", "panic")+"}\n", settings)
	h := serve(t, dir, "--nats-listen", "127.0.0.1:0", "--log-level", "debug")
	c, operator := h.client(), h.operator()
	var messages bytes.Buffer
	var mu sync.Mutex
	if _, err := operator.nc.Subscribe(">", func(m *nats.Msg) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintln(&messages, m.Subject, m.Header, string(m.Data))
	}); err != nil {
		t.Fatal(err)
	}
	if err := operator.nc.Flush(); err != nil {
		t.Fatal(err)
	}
	r := c.result("fh.v1.api.run.leak", "")
	if r.State != "succeeded" && r.State != "failed" || !strings.Contains(string(r.Output), `***`) {
		t.Fatalf("%s %s %s", r.State, r.Output, r.Error)
	}
	for _, args := range [][]string{{"show", r.Run}, {"logs", r.Run}, {"runs"}} {
		text, _ := runToEnd(t, append(args, "--data", h.data)...)
		wantNoCanary(t, strings.Join(args, " "), canary, []byte(text))
	}
	wantNoCanary(t, "the result", canary, fmt.Append(nil, r))
	if err := operator.nc.Flush(); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	wantNoCanary(t, "messages", canary, messages.Bytes())
	mu.Unlock()
	h.stop()
	wantNoCanary(t, "the log of the host", canary, []byte(h.output.all()))
	err := filepath.WalkDir(h.data, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		wantNoCanary(t, path, canary, content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A settings file that allows less is in force with the next operation of an attempt that is
// under way, although the flow could not be loaded with it anymore.
func TestNarrowedWhileARunIsOpen(t *testing.T) {
	t.Parallel()
	arrived, goOn := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(arrived) // the guest makes one request
		select {
		case <-goOn:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(server.Close)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("value-1234"), 0o600); err != nil {
		t.Fatal(err)
	}
	const wide = "allow \"*\" {\n  connections = [\"*\"]\n  secrets = [\"own\"]\n  kv = { bin = \"rw\" }\n  publish = [\"leaks.*\"]\n  artifacts = true\n  sources {\n    file = [\"**\"]\n  }\n}\n"
	settings := apiOf(server, "") + strings.Replace(wide, "**", secret, 1)
	dir := site(t, fmt.Sprintf(`
secret "own" {
  file = %q
}
flow "leak" {
  task "do" {
    plugin   = "./reach.wasm"
    function = "leak"
    input    = "output"

    grant {
      connections = [connection.api]
      secrets     = { token = secret.own }
      kv          = { bin = "rw" }
      publish     = ["leaks.*"]
      artifacts   = true
    }
  }
}
`, secret), settings)
	h := serve(t, dir, "--nats-listen", "127.0.0.1:0")
	ended := make(chan *record, 1)
	c := h.client()
	go func() { ended <- c.result("fh.v1.api.run.leak", "") }()
	within(t, "the guest's request", arrived)
	narrow := strings.Replace(settings, "kv = { bin = \"rw\" }", "kv = { bin = \"ro\" }", 1)
	if err := os.WriteFile(filepath.Join(dir, "flowhost.hcl"), []byte(narrow), 0o600); err != nil {
		t.Fatal(err)
	}
	h.signal(syscall.SIGHUP)
	h.await("allow blocks apply")
	close(goOn)
	r := within(t, "the run's end", ended)
	if r.State != "failed" || !strings.Contains(fmt.Sprint(r.Error), "bin") {
		t.Errorf("%s %s %s", r.State, r.Output, r.Error)
	}
	h.await(`msg="operation denied"`)
	if text := h.output.all(); !strings.Contains(text, `target="kv bin"`) || !strings.Contains(text, `add="kv = { bin = \"rw\" }"`) {
		t.Errorf("the log does not name what was denied:\n%s", text)
	}
}

func wantNoCanary(t testing.TB, where, canary string, text []byte) {
	t.Helper()
	inner := base64.StdEncoding.EncodeToString([]byte("x" + canary))
	for _, form := range []string{canary, strings.ReplaceAll(canary, "/", `\/`), inner[4 : len(inner)-4], hex.EncodeToString([]byte(canary))} {
		if bytes.Contains(text, []byte(form)) {
			t.Errorf("%s: %q was found", where, form)
		}
	}
}

// startShop starts the API of the example, and gives its URL.
func startShop(t testing.TB, program string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, "-listen", "127.0.0.1:0")
	out, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait() // it was killed
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	_, url, _ := strings.Cut(strings.TrimSpace(line), "serves ")
	return strings.TrimSuffix(url, "/orders")
}
