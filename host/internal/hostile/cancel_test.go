package hostile

import "time"

// grace is what a call that is canceled gets in these tests.
const grace = 300 * time.Millisecond

// canceled is guests that are given time to come to their own end, and take it for
// something else. They do nothing before that.
func canceled() []attack {
	shouldStop := imported{"flowhost:task/v1", "should_stop", task}
	told := seq(loop, call(0), eqz, brIf(0), end) // waits until it is
	guests := map[string]struct {
		what string
		guest
	}{
		"asks for ever": {"whether to stop, again and again", guest{
			functions: []function{{export: "run", kind: task, body: forever(call(0), drop)}},
		}},
		"does not care": {"a loop that never asks", guest{
			functions: []function{{export: "run", kind: task, body: forever()}},
		}},
		"sleeps on": {"sleeps that come back at once, again and again", guest{
			imports: []imported{shouldStop, poll}, data: []code{at(0, clockSubscription(time.Hour))},
			functions: []function{{export: "run", kind: task, body: forever(sleep(1))}},
		}},
		"grows": {"all of the memory there is, once it is told", guest{
			functions: []function{{export: "run", kind: task, body: seq(told, forever(number(16), memoryGrow, drop))}},
		}},
		"recursion": {"a function that calls itself, once it is told", guest{
			functions: []function{{export: "run", kind: task, body: seq(told, call(2), number(0))}, inner(call(2))},
		}},
		"trap": {"a trap, once it is told", guest{
			functions: []function{{export: "run", kind: task, body: seq(told, unreachable)}},
		}},
		"fails for ever": {"a failure, again and again, once it is told", guest{
			imports: []imported{shouldStop, setFail}, data: []code{at(0, `{"code":"x"}`)},
			functions: []function{{export: "run", kind: task, body: seq(told, forever(number(0), number(12), call(1), drop))}},
		}},
		"sets an output": {"an answer that is too late", guest{
			imports: []imported{shouldStop, setOutput}, data: []code{at(0, "42")},
			functions: []function{{export: "run", kind: task, body: seq(told, number(0), number(2), call(1))}},
		}},
	}
	var attacks []attack
	for name, g := range guests {
		if g.imports == nil {
			g.imports = []imported{shouldStop}
		}
		attacks = append(attacks, attack{
			name: "canceled/" + name, what: g.what, module: g.bytes, want: isCanceled, peak: 400,
			cancel: 50 * time.Millisecond, deadline: time.Minute,
		})
	}
	return attacks
}
