package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
)

// largeRun is a run with as many items as there may be.
func largeRun(t *testing.T, r *rig) run.ID {
	t.Helper()
	items := make([]string, flows.MaxItems)
	for i := range items {
		items[i] = fmt.Sprint(i)
	}
	return r.submit("large", "["+strings.Join(items, ",")+"]")
}

// What is large goes in pieces: no turn of the loop takes long, which the rig checks.
func TestLargeWorkGoesInPieces(t *testing.T) {
	t.Parallel()
	var source strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&source, "flow \"f%d\" {\n  trigger \"schedule\" \"s\" { every = \"1h\" }\n  task \"a\" { plugin = \"./m.wasm\" }\n}\n", i)
	}
	source.WriteString(`
flow "large" {
  task "copy" {
    plugin   = "./m.wasm"
    for_each = trigger.payload
    input    = each.value
    on_error = "continue"
  }
  task "sum" {
    plugin = "./m.wasm"
    input  = task.copy.output
  }
  output "n" { value = task.sum.output }
}`)
	set := load(t, source.String())
	r := boot(t, Config{Invoker: guests{"copy": func(_ context.Context, call run.Call) (run.Result, error) {
		if len(call.Key) == 5 {
			return fails(run.OutcomeFailed, false), nil
		}
		return gives(json.RawMessage("1")), nil
	}}}, set)
	id := largeRun(t, r)
	record := r.wait(id)
	if record.State != run.Succeeded {
		t.Fatalf("%s: %v", record.State, record.Error)
	}
	if again, err := r.Retry(t.Context(), id, run.RerunOptions{Task: run.TaskRef{Task: "sum"}}); err != nil {
		t.Error(err)
	} else if record := r.wait(again.Run); record.State != run.Succeeded {
		t.Errorf("%s: %v", record.State, record.Error)
	}
	for range 3 {
		if err := r.Deploy(t.Context(), set); err != nil {
			t.Error(err)
		}
	}
	r.stop()
}
