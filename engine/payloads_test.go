package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flowhost/flowhost/engine/memory"
	"github.com/flowhost/flowhost/run"
)

const payloadsHCL = `
flow "f" {
  param "p" {
    type    = string
    default = ""
  }
  task "a" {
    plugin = "./m.wasm"
    input  = { marked = trigger.payload.a }
  }
  task "b" {
    plugin   = "./m.wasm"
    for_each = concat(range(1000), range(1000, 1500))
    input    = [each.value, task.a.output]
    on_error = "continue"
  }
}
`

// slowHistory is an observer that receives no record before it is released.
type slowHistory struct {
	notices
	released chan struct{}
}

func (s *slowHistory) Committed(ctx context.Context, n run.Notice) error {
	if n.Record != nil {
		select {
		case <-s.released:
		case <-ctx.Done():
		}
	}
	return s.notices.Committed(ctx, n)
}

// visited gives all payloads as one text.
func (r *rig) visited() string {
	r.t.Helper()
	var all strings.Builder
	err := r.Payloads(context.Background(), func(p json.RawMessage) { fmt.Fprintf(&all, "%s\n", p) })
	if err != nil {
		r.t.Fatal(err)
	}
	return all.String()
}

// The payloads of a run are there from its request until an observer has its record, also
// after a restart, and of all items of a large fan-out.
func TestPayloads(t *testing.T) {
	t.Parallel()
	set := load(t, payloadsHCL)
	synctest.Test(t, func(t *testing.T) {
		hold := func(ctx context.Context, c run.Call) (run.Result, error) {
			if c.Task == "a" {
				return gives(json.RawMessage(`"output of a"`)), nil
			}
			if c.Key == "1499" {
				f := fails(run.OutcomeFailed, false)
				f.Failure.Details = json.RawMessage(`"details of b"`)
				return f, nil
			}
			if c.Key == "7" {
				return takes(time.Hour)(ctx, c)
			}
			return gives(json.RawMessage(fmt.Sprintf(`"output of b %s."`, c.Key))), nil
		}
		observer := &slowHistory{released: make(chan struct{})}
		config := Config{Journal: memory.NewJournal(), Invoker: guests{"a": hold, "b": hold}, Timeout: 2 * time.Hour, Observers: []Observation{{Observer: observer, RunsOnly: true}}}
		r := boot(t, config, set)
		if all := r.visited(); all != "" {
			t.Errorf("without a run: %s", all)
		}
		id := r.submit("f", `{"a":"payload"}`)
		time.Sleep(time.Minute)
		synctest.Wait()
		want := func(when string, parts ...string) {
			t.Helper()
			all := r.visited()
			for _, part := range parts {
				if !strings.Contains(all, part) {
					t.Errorf("%s: %s is missing", when, part)
				}
			}
		}
		parts := []string{`{"a":"payload"}`, `{"marked":"payload"}`, `"output of a"`, `[1499,"output of a"]`, `"output of b 1498."`, `"details of b"`}
		want("while the run is open", parts...)
		r.crash()
		r = boot(t, config, set)
		want("after a crash", parts...)
		record := r.wait(id)
		if record.State != run.Succeeded {
			t.Fatalf("%s %v", record.State, record.Error)
		}
		if err := r.command(t.Context(), func() { r.exec.finished.limit = 1 }); err != nil {
			t.Fatal(err)
		}
		want("while no observer has its end", parts...)
		close(observer.released)
		r.run("f", `{"a":"second"}`)
		synctest.Wait()
		r.run("f", `{"a":"third"}`)
		if all := r.visited(); strings.Contains(all, `{"a":"payload"}`) || !strings.Contains(all, `{"a":"third"}`) {
			t.Error("the first run is kept although the observer has its end, or the last one is not")
		}
		r.stop()
	})
}

// A run that ends between two looks at it is looked at as a whole.
func TestPayloadsOfARunThatEnds(t *testing.T) {
	t.Parallel()
	set := load(t, payloadsHCL)
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		end := sync.OnceFunc(func() { close(release) })
		hold := func(ctx context.Context, c run.Call) (run.Result, error) {
			if c.Key == "1499" {
				<-release
			}
			return gives(json.RawMessage(fmt.Sprintf(`"output of %s %s."`, c.Task, c.Key))), nil
		}
		r := boot(t, Config{Invoker: guests{"a": hold, "b": hold}}, set)
		id := r.submit("f", `{"a":"payload"}`)
		synctest.Wait()
		seen := map[string]bool{}
		err := r.Payloads(t.Context(), func(p json.RawMessage) {
			if seen[string(p)] = true; len(seen) == 900 {
				end()
				r.wait(id)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 1500 {
			if p := fmt.Sprintf(`"output of b %d."`, i); !seen[p] {
				t.Errorf("%s is missing", p)
			}
		}
		r.stop()
	})
}
