package e2e

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// scriptTask is a task that runs steps of the guest reach, see script there.
func scriptTask(name, connection, more string, steps ...string) string {
	text := strings.Join(steps, `", "`)
	grant := "connection." + connection
	if strings.Contains(text, "GET ") {
		grant += ", connection.api"
	}
	return fmt.Sprintf(`
  task %q {
    plugin   = "./reach.wasm"
    function = "script"
    input    = { connection = %q, steps = ["%s"] }
    grant {
      connections = [%s]
    }
    %s
  }
`, name, connection, text, grant, more)
}

// patiently is a policy that outlasts what is interrupted.
const patiently = `
    retry {
      attempts = 1000
      backoff  = "constant"
      delay    = "50ms"
    }
`

// breaking is an API that breaks the first connections that it gets, at several points, and
// knows which are open.
type breaking struct {
	*httptest.Server

	mu   sync.Mutex
	gets int
	open map[net.Conn]bool // connections with a request under way
}

func startBreaking(t *testing.T) *breaking {
	b := &breaking{open: map[net.Conn]bool{}}
	b.Server = httptest.NewUnstartedServer(b)
	b.Config.ConnState = func(conn net.Conn, state http.ConnState) {
		b.mu.Lock()
		defer b.mu.Unlock()
		if delete(b.open, conn); state == http.StateActive {
			b.open[conn] = true
		}
	}
	b.Start()
	t.Cleanup(b.Close)
	return b
}

func (b *breaking) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	b.mu.Lock()
	b.gets++
	n := b.gets
	b.mu.Unlock()
	switch n {
	case 1: // without an answer
	case 2:
		w.Header().Set("Content-Length", "100")
		fmt.Fprint(w, "half of the")
	case 3:
		w.WriteHeader(http.StatusOK) // without an end
		fmt.Fprint(w, "chunk")
		_ = http.NewResponseController(w).Flush() // the connection breaks below
	default:
		fmt.Fprint(w, "whole")
		return
	}
	panic(http.ErrAbortHandler)
}

// An API that ends in the middle of an operation fails the attempt with unreachable, which is
// retried as the task says.
func TestAPIEnds(t *testing.T) {
	t.Parallel()
	b := startBreaking(t)
	fetch := func(name, more string) string {
		return fmt.Sprintf(`
  task %q {
    plugin   = "./reach.wasm"
    function = "fetch"
    input    = { connection = "api", url = "/%[1]s" }
    grant {
      connections = [connection.api]
    }
    %s
  }
`, name, more)
	}
	h := serve(t, site(t, "flow \"break\" {\n"+fetch("again", patiently)+"}\nflow \"alone\" {\n"+fetch("once", "")+"}\n", apiOf(b.Server, "")), "--nats-listen", "127.0.0.1:0")
	c := h.client()
	follow := c.subscribe("fh.v1.run.break.>")
	r := c.result("fh.v1.api.run.break", "")
	if again := r.task(t, "again"); r.State != "succeeded" || again.Attempts != 4 || string(again.Output) != `"whole"` {
		t.Errorf("%s after %d attempts: %s %+v", r.State, again.Attempts, again.Output, again.Error)
	}
	if got := outcomes(follow.finished(r.Run), "again"); strings.Join(got, ", ") != "failed unreachable, failed unreachable, failed unreachable, succeeded" {
		t.Errorf("attempts %q", got)
	}
	b.CloseClientConnections()
	b.Listener.Close()
	r = c.result("fh.v1.api.run.alone", "")
	if once := r.task(t, "once"); once.Outcome != "failed" || once.Error == nil || once.Error.Code != "unreachable" || once.Attempts != 1 {
		t.Errorf("%s after %d attempts: %+v", once.Outcome, once.Attempts, once.Error)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.open) != 0 {
		t.Errorf("%d requests are under way", len(b.open))
	}
}

// outcomes are those of a task's attempts, with the codes of failures.
func outcomes(all []event, task string) []string {
	var out []string
	for _, e := range all {
		if e.Kind == "attempt_finished" && e.Task == task {
			text := e.Outcome
			if e.Error != nil {
				text += " " + e.Error.Code
			}
			out = append(out, text)
		}
	}
	return out
}

// holding is an API whose first answer waits for the end of the test.
type holding struct {
	*httptest.Server
	asked chan struct{}
}

func startHolding(t *testing.T) *holding {
	h := &holding{asked: make(chan struct{}, 100)}
	h.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		h.asked <- struct{}{}
		<-r.Context().Done()
	}))
	t.Cleanup(h.Close)
	return h
}

// A host that is killed in the middle of a transaction leaves nothing of it behind: the next
// attempt of the next host finds the database as it was.
func TestHostKilledInTransaction(t *testing.T) {
	t.Parallel()
	api := startHolding(t)
	flows := "flow \"store\" {\n" + scriptTask("store", "db", "",
		"CREATE TABLE IF NOT EXISTS rows (attempt TEXT)", "begin", "INSERT INTO rows VALUES ('ATTEMPT')", "once GET /hold", "commit", "read SELECT attempt FROM rows") + "}\n"
	settings := "connection \"db\" {\n type = \"sqlite\"\n path = \"./rows.db\"\n access = \"rw\"\n}\n" + apiOf(api.Server, "")
	h := serve(t, site(t, flows, settings), "--nats-listen", "127.0.0.1:0")
	id := h.client().submit("fh.v1.api.run.store", "")
	within(t, "the request of the task", api.asked)
	h.kill()
	h.restart()
	c := h.client()
	c.follow(`{"run":"` + id + `"}`).finished(id)
	r := verb[record](c, "get", `{"run":"`+id+`"}`, nil)
	if store := r.task(t, "store"); r.State != "succeeded" || store.Attempts != 2 || string(store.Output) != `["2"]` {
		t.Errorf("%s after %d attempts: %s %+v", r.State, store.Attempts, store.Output, store.Error)
	}
}
