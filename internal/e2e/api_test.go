package e2e

import (
	"context"
	"net"
	"slices"
	"strconv"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const apiFlows = `
flow "echo" {
  task "echo" {
    plugin   = "./unruly.wasm"
    function = "echo"
    input    = trigger.payload
  }
}

flow "hold" {
  task "hold" {
    plugin   = "./unruly.wasm"
    function = "hold"
    input    = { hold = true }
  }
}
`

func TestRequests(t *testing.T) {
	t.Parallel()
	h := serve(t, writeFlows(t, apiFlows), "--nats-listen", "127.0.0.1:0")
	c, operator := h.client(), h.operator()

	t.Run("exact payload", func(t *testing.T) {
		const body = `{"big":12345678901234567890,"exact":0.10,"text":"<é>"}`
		if got := string(c.with(t).result("fh.v1.api.run.echo", " "+body+"\n").Output); got != `{"echo":`+body+`}` {
			t.Error(got)
		}
	})
	t.Run("unknown flow", func(t *testing.T) {
		answer := c.with(t).request("fh.v1.api.run.nothing", "{}", nats.Header{"X-Case": {"unknown"}})
		checkFault(t, answer, "unknown_flow", `"nothing"`)
		operator.with(t).deadLetter("nothing", "X-Case", "unknown")
	})
	t.Run("wrong header", func(t *testing.T) {
		checkFault(t, c.with(t).request("fh.v1.api.run.echo", "{}", nats.Header{"Fh-Wait": {"long"}}), "header", "Fh-Wait")
	})
	t.Run("impatient, then cancel", func(t *testing.T) {
		c := c.with(t)
		follow := c.subscribe("fh.v1.run.hold.>")
		answer := c.request("fh.v1.api.run.hold", "{}", nats.Header{"Fh-Wait": {"10ms"}})
		checkFault(t, answer, "timeout", "continues")
		id := decode[struct{ Run string }](t, answer.Data).Run
		follow.attempt("hold", 1)
		if answer := c.request("fh.v1.api.cancel", `{"run":"`+id+`","reason":"not needed"}`, nil); answer.Header.Get("Nats-Service-Error-Code") != "" {
			t.Fatalf("cancel: %v %s", answer.Header, answer.Data)
		}
		all := follow.finished(id)
		last := all[len(all)-1].Record
		if last.State != "canceled" || last.Error.Outcome != "canceled" || last.task(t, "hold").State != "canceled" {
			t.Errorf("%+v %+v", last, last.Error)
		}
	})
}

// verb asks for something about runs, which must not be refused.
func verb[T any](c *client, name, body string, header nats.Header) T {
	c.t.Helper()
	answer := c.request("fh.v1.api."+name, body, header)
	if code := answer.Header.Get("Nats-Service-Error-Code"); code != "" {
		c.t.Fatalf("%s %s: %s", name, body, answer.Data)
	}
	return decode[T](c.t, answer.Data)
}

const controlFlows = apiFlows + `
flow "broken" {
  description = "Breaks in the middle."
  param "text" {
    type = string
  }
  task "first" {
    plugin   = "./unruly.wasm"
    function = "echo"
    input    = param.text
  }
  task "second" {
    plugin   = "./unruly.wasm"
    function = "trap"
    input    = {}
    after    = [task.first]
  }
}
`

// TestControl looks at runs and changes them, as the commands do.
func TestControl(t *testing.T) {
	t.Parallel()
	h := serve(t, writeFlows(t, controlFlows), "--nats-listen", "127.0.0.1:0")
	c := h.client()
	type named struct {
		Run      string `json:"run"`
		Repeated bool   `json:"repeated"`
		RetryOf  string `json:"retry_of"`
	}
	type list struct {
		Runs []struct {
			Run   string
			State string
			Error string
		}
		Next string
	}
	type watched struct {
		Record  *record
		Version uint64
	}

	params := nats.Header{"Fh-Params": {`{"text":"<é>"}`}, "Fh-Key": {"k"}}
	first := decode[named](t, c.request("fh.v1.api.run.broken", "", params).Data)
	if again := decode[named](t, c.request("fh.v1.api.run.broken", "", params).Data); again.Run != first.Run || !again.Repeated || first.Repeated {
		t.Errorf("the same key: %+v, then %+v", first, again)
	}
	about := `{"run":"` + first.Run + `"`

	// Each version is later than the one before, up to the end.
	var last watched
	for seen := uint64(0); last.Record == nil || last.Record.State != "failed"; seen = last.Version {
		last = verb[watched](c, "watch", about+`,"brief":true,"seen":`+strconv.FormatUint(seen, 10)+`}`, waiting())
		if last.Record == nil || last.Version <= seen {
			t.Fatalf("after version %d: %+v", seen, last)
		}
	}
	got := verb[record](c, "get", about+"}", nil)
	if got.State != "failed" || got.Error.Task != "second" || string(got.task(t, "first").Output) != `"<é>"` || string(got.Params["text"]) != `"<é>"` {
		t.Errorf("%+v", got)
	}
	if lines := verb[struct{ End bool }](c, "logs", about+"}", nil); !lines.End {
		t.Error("the log of a finished run has no end")
	}

	retried := verb[named](c, "retry", about+"}", waiting())
	if retried.Run == first.Run || retried.RetryOf != first.Run {
		t.Errorf("retry: %+v", retried)
	}
	if tasks := verb[record](c, "get", `{"run":"`+retried.Run+`"}`, nil); tasks.task(t, "first").Attempts != 0 || string(tasks.task(t, "first").Output) != `"<é>"` {
		t.Errorf("retry: %+v", tasks.Tasks)
	}
	all := verb[list](c, "list", `{"flow":"broken","states":["failed"],"limit":1}`, nil)
	if len(all.Runs) != 1 || all.Runs[0].Run != retried.Run || all.Runs[0].Error != "trap" || all.Next != retried.Run {
		t.Errorf("the first page: %+v", all)
	}
	all = verb[list](c, "list", `{"flow":"broken","before":"`+all.Next+`"}`, nil)
	if len(all.Runs) != 1 || all.Runs[0].Run != first.Run || all.Next != "" {
		t.Errorf("the second page: %+v", all)
	}
	checkFault(t, c.request("fh.v1.api.cancel", about+"}", nil), "finished", "finished")
	checkFault(t, c.request("fh.v1.api.get", `{"run":"00000000000000000000000000"}`, nil), "unknown_run", "no such run")
	flows := verb[struct {
		Flows []struct{ Flow, Description string }
	}](c, "flows", "", nil).Flows
	if len(flows) != 3 || flows[0].Flow != "broken" || flows[0].Description == "" {
		t.Errorf("flows: %+v", flows)
	}

	// What has finished is known after a restart, too.
	h.stop()
	h.restart()
	c = h.client()
	if after := verb[record](c, "get", about+"}", nil); after.State != "failed" || len(after.Tasks) != 2 {
		t.Errorf("after a restart: %+v", after)
	}
	if again := decode[named](t, c.request("fh.v1.api.run.broken", "", params).Data); again.Run != first.Run || !again.Repeated {
		t.Errorf("the same key after a restart: %+v", again)
	}
}

// TestWatchOverRestart watches a run whose host is killed meanwhile.
func TestWatchOverRestart(t *testing.T) {
	t.Parallel()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	free.Close()
	h := serve(t, writeFlows(t, apiFlows), "--nats-listen", free.Addr().String())
	h.client().submit("fh.v1.api.run.hold", "")
	watch, out := command("watch", "hold@latest", "--data", h.data), newOutput()
	watch.Stdout, watch.Stderr = out, out
	if err := watch.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { watch.Process.Kill() })
	if err := out.await("hold: running"); err != nil {
		t.Fatalf("%v; it said:\n%s", err, out)
	}
	h.kill()
	h.restart()
	if err := out.await("hold: running (attempt 2)"); err != nil {
		t.Errorf("%v; it said:\n%s", err, out)
	}
	if err := watch.Wait(); err != nil {
		t.Errorf("%v; it said:\n%s", err, out)
	}
}

// TestDurableTriggers publishes to the stream of triggers: the acknowledgement is
// the acceptance, and each message makes one run.
func TestDurableTriggers(t *testing.T) {
	t.Parallel()
	h := serve(t, writeFlows(t, apiFlows), "--nats-listen", "127.0.0.1:0")
	c := h.client()
	publish := func(body, id string) *jetstream.PubAck {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		ack, err := c.js.PublishMsg(ctx, &nats.Msg{Subject: "fh.v1.trigger.echo", Data: []byte(body)}, jetstream.WithMsgID(id))
		if err != nil {
			t.Fatal(err)
		}
		return ack
	}
	for _, m := range []struct {
		body, id string
		again    bool
	}{{`"a"`, "1", false}, {`"b"`, "2", false}, {`"a"`, "1", true}, {`"other"`, "2", true}, {`"last"`, "3", false}} {
		if ack := publish(m.body, m.id); ack.Stream != "FH_TRIGGERS" || ack.Duplicate != m.again {
			t.Errorf("%s with id %s: %+v", m.body, m.id, ack)
		}
	}

	// The stream is read in order: when the last message's run is submitted, all
	// runs are.
	payloads, open := []string{}, map[string]bool{}
	c.follow(`{"flow":"echo"}`).until("the end of all runs", func(e event) bool {
		open[e.Run] = true
		if e.Kind == "finished" {
			delete(open, e.Run)
			payloads = append(payloads, string(e.Record.Trigger.Payload))
		}
		return slices.Contains(payloads, `"last"`) && len(open) == 0
	})
	slices.Sort(payloads)
	if want := []string{`"a"`, `"b"`, `"last"`}; !slices.Equal(payloads, want) {
		t.Errorf("runs of %v, want %v", payloads, want)
	}
}
