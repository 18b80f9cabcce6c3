package flows

import (
	"encoding/json"
	"runtime"
	"strings"
	"testing"

	"github.com/flowhost/flowhost/run"
)

const triedHCL = `
flow "f" {
  param "n" { type = number }
  task "small" {
    plugin = "./greet.wasm"
    input  = { n = param.n + 1 }
  }
  task "large" {
    plugin = "./greet.wasm"
    input  = [for i in range(param.n) : [for j in range(20) : i * j]]
  }
  task "hidden" {
    plugin = "./greet.wasm"
    input  = try(length([for i in range(param.n) : [for j in range(20) : i * j]]), "too much")
  }
}`

var many = map[string]json.RawMessage{"n": json.RawMessage("300")}

// What a trial has enough for has the outcome of a whole evaluation, and what it does not
// is reported, also where the expression itself would hide that.
func TestTry(t *testing.T) {
	t.Parallel()
	f := oneFlow(t, triedHCL)
	s := f.Scope(&run.Run{Params: many})
	for name, want := range map[string]bool{"small": true, "large": false, "hidden": false} {
		var tried, whole json.RawMessage
		var failure *run.Failure
		task := f.Task(name)
		if enough := s.Try(500, func() { tried, failure = task.Input(s) }); enough != want {
			t.Errorf("%s: enough is %t: %s, %v", name, enough, tried, failure)
		}
		if whole, failure = task.Input(s); failure != nil || want && string(whole) != string(tried) || strings.Contains(string(whole), "too much") {
			t.Errorf("%s: %s, then %s, %v", name, tried, whole, failure)
		}
	}
	if a, enough, err := f.TryAdmit(500, run.Request{Params: many}); !enough || err != nil || !a.Accepted {
		t.Errorf("a request is too much: %v", err)
	}
}

// An evaluation ends soon after it is interrupted, and the next one is whole again.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	f := oneFlow(t, triedHCL)
	s := f.Scope(&run.Run{Params: many})
	ended := make(chan *run.Failure)
	go func() {
		for {
			if _, failure := f.Task("large").Input(s); failure != nil {
				ended <- failure
				return
			}
		}
	}()
	runtime.Gosched()
	s.Interrupt()
	<-ended
	s.Continue()
	if _, failure := f.Task("large").Input(s); failure != nil {
		t.Error(failure)
	}
}
