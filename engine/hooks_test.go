package engine

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/flowhost/flowhost/engine/memory"
	"github.com/flowhost/flowhost/run"
)

const partsHCL = `
flow "f" {
  timeout = "1m"
  task "a" { plugin = "./m.wasm" }
  task "b" {
    plugin = "./m.wasm"
    after  = [task.a]
  }
  on_failure {
    task "alert" {
      plugin = "./m.wasm"
      input  = { why = error.code }
    }
  }
  on_success {
    task "cheer" {
      plugin = "./m.wasm"
      input  = task.b.output
    }
  }
  finally {
    timeout = "30s"
    task "sweep" {
      plugin = "./m.wasm"
      input  = { why = error.code, alert = task.alert.state, cheer = task.cheer.state }
    }
    task "close" {
      plugin = "./m.wasm"
      after  = [task.sweep]
    }
  }
}`

// calls notes the tasks that guests are asked for, in order, with their input.
type calls struct {
	mu   sync.Mutex
	list []string
}

func (c *calls) note(call run.Call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = append(c.list, strings.TrimSpace(call.Task+" "+string(call.Input)))
}

// of makes guests that note what they are asked for, and do what is said.
func (c *calls) of(g guests) guests {
	noted := guests{}
	for _, task := range []string{"a", "b", "alert", "cheer", "sweep", "close"} {
		noted[task] = func(ctx context.Context, call run.Call) (run.Result, error) {
			c.note(call)
			return guests{task: g[task]}.Invoke(ctx, call)
		}
	}
	return noted
}

func broken(context.Context, run.Call) (run.Result, error) {
	return fails(run.OutcomeFailed, false), nil
}

func TestPartsOfAFlow(t *testing.T) {
	t.Parallel()
	none := `{"alert":"waiting","cheer":"succeeded","why":""}`
	for _, c := range []struct {
		name   string
		guests guests
		cancel time.Duration // after which the run is canceled
		want   []string
		state  run.State
		code   string
	}{
		{"all goes well", guests{}, 0,
			[]string{"a null", "b null", "cheer null", "sweep " + none, "close null"}, run.Succeeded, ""},
		{"a main task fails", guests{"a": broken}, 0,
			[]string{"a null", `alert {"why":"test"}`, `sweep {"alert":"succeeded","cheer":"waiting","why":"test"}`, "close null"}, run.Failed, "test"},
		{"on_success fails", guests{"cheer": broken}, 0,
			[]string{"a null", "b null", "cheer null", `sweep {"alert":"waiting","cheer":"failed","why":"test"}`, "close null"}, run.Failed, "test"},
		{"finally fails", guests{"sweep": broken}, 0,
			[]string{"a null", "b null", "cheer null", "sweep " + none}, run.Failed, "test"},
		{"canceled", guests{"a": takes(time.Hour)}, 10 * time.Second,
			[]string{"a null", `sweep {"alert":"waiting","cheer":"waiting","why":"canceled"}`, "close null"}, run.Canceled, "canceled"},
		{"the time is up", guests{"a": takes(time.Hour)}, 0,
			[]string{"a null", `alert {"why":"timeout"}`, `sweep {"alert":"succeeded","cheer":"waiting","why":"timeout"}`, "close null"}, run.Failed, "timeout"},
		{"canceled in on_success", guests{"cheer": takes(time.Hour)}, 10 * time.Second,
			[]string{"a null", "b null", "cheer null", `sweep {"alert":"waiting","cheer":"canceled","why":"canceled"}`, "close null"}, run.Canceled, "canceled"},
		{"canceled in finally", guests{"sweep": takes(time.Hour)}, 10 * time.Second,
			[]string{"a null", "b null", "cheer null", "sweep " + none}, run.Canceled, "canceled"},
		{"the time of finally is up", guests{"sweep": takes(time.Hour)}, 0,
			[]string{"a null", "b null", "cheer null", "sweep " + none}, run.Failed, "timeout"},
	} {
		for _, crash := range []bool{false, true} {
			name := c.name
			if crash {
				name += ", and the host crashes"
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				set := load(t, partsHCL)
				synctest.Test(t, func(t *testing.T) {
					journal, asked := memory.NewJournal(), new(calls)
					config := Config{Journal: journal, Invoker: asked.of(c.guests)}
					r := boot(t, config, set)
					id := r.submit("f", `null`)
					if crash {
						time.Sleep(5 * time.Second)
						synctest.Wait()
						r.crash()
						r = boot(t, config, set)
					}
					if c.cancel > 0 {
						time.Sleep(c.cancel)
						if err := r.Cancel(t.Context(), id, ""); err != nil {
							t.Fatal(err)
						}
					}
					time.Sleep(3 * time.Minute)
					if !crash || fold(t, journal).Runs[id] == nil {
						record := r.wait(id)
						if record.State != c.state || c.code != "" && (record.Error == nil || record.Error.Code != c.code) {
							t.Errorf("%s, %v; want %s, %q", record.State, record.Error, c.state, c.code)
						}
					}
					state := fold(t, journal).Runs[id]
					if state.State != c.state {
						t.Errorf("recorded as %s, want %s", state.State, c.state)
					}
					got := slices.CompactFunc(asked.list, func(a, b string) bool { return a == b }) // an attempt that was lost is made again
					if diff := cmp.Diff(c.want, got); diff != "" {
						t.Errorf("calls (-want +got):\n%s", diff)
					}
					r.kill()
					<-r.ended
				})
			})
		}
	}
}
