package flows

import (
	"fmt"
	"sync"
	"testing"
)

// TestConcurrentRuns evaluates many runs of one flow at once: flows are shared,
// scopes are not.
func TestConcurrentRuns(t *testing.T) {
	t.Parallel()
	f := oneFlow(t, `
		variable "rate" {
		  default = 2
		}
		flow "f" {
		  param "n" {
		    type    = number
		    default = 1
		  }
		  locals {
		    fixed = var.rate * 10
		    late  = task.a.output.n * local.fixed
		  }
		  trigger "message" "m" {
		    subject = "x"
		    filter  = trigger.payload.n >= 0
		  }
		  concurrency {
		    key = "k${trigger.payload.n}"
		  }
		  task "a" {
		    plugin = "./greet.wasm"
		    input  = { n = param.n, text = format("%d of %s", param.n, flow.name) }
		  }
		  output "o" {
		    value = { late = local.late, n = try(task.a.output.missing, param.n) }
		  }
		}`)
	var running sync.WaitGroup
	for i := range 8 {
		running.Go(func() {
			for j := range 50 {
				n := 100*i + j
				payload := fmt.Sprintf(`{"n":%d}`, n)
				a, err := f.Admit(request("m", payload))
				if err != nil || a.Concurrency != fmt.Sprintf("k%d", n) {
					t.Errorf("%+v %v", a, err)
					return
				}
				s := f.Scope(aRun(f, payload, a.Params))
				got, failure := f.Tasks[0].Input(s)
				if want := fmt.Sprintf(`{"n":%d,"text":"%d of f"}`, n, n); failure != nil || string(got) != want {
					t.Errorf("%s %v", got, failure)
				}
				s.Settle(done("a", payload))
				out, failure := f.Output(s)
				if want := fmt.Sprintf(`{"o":{"late":%d,"n":%d}}`, 20*n, n); failure != nil || string(out) != want {
					t.Errorf("%s %v", out, failure)
				}
			}
		})
	}
	running.Wait()
}
