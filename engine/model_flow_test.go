package engine

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
)

// flowPlan is a random flow, with what its guests do.
type flowPlan struct {
	module string // all tasks of this version of the flow call it
	name   string
	parts  map[flows.Part]*partPlan

	timeout  time.Duration // 0 for none
	limit    int           // of concurrency; 0 for none
	keyed    bool
	priority int
	broken   bool // its output cannot be evaluated
	onLimit  flows.OnLimit
	subflow  bool // is given params and no payload
}

// all are the tasks of all parts.
func (f *flowPlan) all() []*taskPlan {
	var all []*taskPlan
	for _, part := range allParts {
		all = append(all, f.part(part).tasks...)
	}
	return all
}

// part is never nil.
func (f *flowPlan) part(part flows.Part) *partPlan {
	if p := f.parts[part]; p != nil {
		return p
	}
	return &partPlan{}
}

// task is the plan of a task, nil for none.
func (f *flowPlan) task(name string) *taskPlan {
	for _, t := range f.all() {
		if t.name == name {
			return t
		}
	}
	return nil
}

type taskPlan struct {
	name   string
	key    string // of an item; empty for a task
	part   flows.Part
	group  *groupPlan // that it is in; nil for none
	place  int        // among the members of group
	after  []string   // references, "task.n" and "group.n"
	inputs []string
	input  inputKind
	when   whenKind
	runOn  flows.RunOn
	goesOn bool // on_error = "continue"
	each   *eachPlan
	wait   *waitPlan // of a wait, whose name is "wait.…"; nil for a task
	call   *callPlan // of a task that runs a flow; nil for a function
	limits []string
	retry  run.RetryPolicy
	again  againKind

	priority int
	timeout  time.Duration
	guest    guestPlan
}

func (t *taskPlan) ref() run.TaskRef { return run.TaskRef{Task: t.name, Key: t.key} }

type inputKind int

const (
	inputNone   inputKind = iota
	inputWhole            // the output of the first of inputs, as it is
	inputList             // the outputs of inputs
	inputItem             // the item of the fan-out
	inputBroken           // cannot be evaluated
)

// whenKind is a condition: always, never, or one that looks.
type whenKind int

const (
	whenAlways whenKind = iota
	whenNever
	whenPayload // trigger.payload.n > 0
	whenState   // the first of after has succeeded
	whenBroken  // cannot be evaluated
)

// againKind is a retry condition.
type againKind int

const (
	againAsItSays againKind = iota
	againEarly              // attempts 1 and 2 only
	againFailed             // not what traps or takes too long
	againBroken             // cannot be evaluated
)

// guestPlan is what a guest does: something bad in its first attempts, and then
// well.
type guestPlan struct {
	bad      int         // attempts that do not go well
	outcome  run.Outcome // of these; lost for a host that breaks
	again    bool        // says that a failure is retryable
	takes    time.Duration
	large    bool          // its output is stored apart
	stubborn time.Duration // continues for so long when it is asked to end
	deaf     bool          // does not hear that it is asked to end
}

func (f *flowPlan) hcl() string {
	var b strings.Builder
	fmt.Fprintf(&b, "flow %q {\n  priority = %d\n", f.name, f.priority)
	if f.timeout > 0 {
		fmt.Fprintf(&b, "  timeout = %q\n", f.timeout)
	}
	if f.limit > 0 {
		fmt.Fprintf(&b, "  concurrency {\n    limit = %d\n", f.limit)
		if f.keyed {
			b.WriteString("    key = trigger.payload.k\n")
		}
		fmt.Fprintf(&b, "    on_limit = %q\n", f.onLimit)
		b.WriteString("  }\n")
	}
	f.part(flows.PartMain).hcl(&b, f.module)
	if f.broken {
		b.WriteString("  output \"v\" {\n    value = trigger.payload.missing.deeper\n  }\n")
	}
	for _, part := range hookParts {
		if f.parts[part] == nil {
			continue
		}
		fmt.Fprintf(&b, "  %s {\n", part)
		f.parts[part].hcl(&b, f.module)
		b.WriteString("  }\n")
	}
	b.WriteString("}\n")
	if f.subflow {
		return f.withParams(b.String())
	}
	return b.String()
}

func (t *taskPlan) hcl(b *strings.Builder, module string) {
	if t.wait != nil {
		t.waitHCL(b)
		return
	}
	fmt.Fprintf(b, "  task %q {\n    run_on = %q\n    after = [%s]\n", t.name, t.runOn, strings.Join(t.after, ", "))
	if t.call != nil {
		fmt.Fprintf(b, "    flow = flow.%s\n", t.call.flow)
	} else {
		fmt.Fprintf(b, "    plugin = \"./%s\"\n    priority = %d\n    limit = [%s]\n", module, t.priority, strings.Join(t.limits, ", "))
	}
	if t.timeout > 0 {
		fmt.Fprintf(b, "    timeout = %q\n", t.timeout)
	}
	if t.goesOn {
		b.WriteString("    on_error = \"continue\"\n")
	}
	if t.each != nil {
		t.each.hcl(b, t.inputs)
	}
	input := map[inputKind]string{
		inputNone: "null", inputList: "[" + outputsOf(t.inputs) + "]", inputBroken: "trigger.payload.missing.deeper",
		inputItem: "{ key = each.key, value = each.value, index = each.index }",
	}[t.input]
	if t.input == inputWhole {
		input = outputsOf(t.inputs[:1])
	}
	if t.call != nil {
		input = t.call.input(t.input, input)
	}
	fmt.Fprintf(b, "    input = %s\n", input)
	t.when.hcl(b, t.after)
	fmt.Fprintf(b, "    retry {\n      attempts = %d\n      backoff = %q\n      delay = %q\n      max = %q\n      jitter = 0\n",
		t.retry.Attempts, t.retry.Backoff, t.retry.Delay, t.retry.Max)
	switch t.again {
	case againEarly:
		b.WriteString("      when = error.attempt < 3\n")
	case againFailed:
		b.WriteString("      when = error.outcome == \"failed\"\n")
	case againBroken:
		b.WriteString("      when = trigger.payload.missing.deeper\n")
	}
	b.WriteString("    }\n  }\n")
}

func (w whenKind) hcl(b *strings.Builder, after []string) {
	switch w {
	case whenNever:
		b.WriteString("    when = false\n")
	case whenPayload:
		b.WriteString("    when = trigger.payload.n > 0\n")
	case whenState:
		fmt.Fprintf(b, "    when = %s.state == \"succeeded\"\n", after[0])
	case whenBroken:
		b.WriteString("    when = trigger.payload.missing.deeper\n")
	}
}

func outputsOf(refs []string) string {
	var list []string
	for _, ref := range refs {
		list = append(list, ref+outputWord(ref))
	}
	return strings.Join(list, ", ")
}

// upstream is what a task waits for, by reference.
func (t *taskPlan) upstream() []string {
	all := slices.Clone(t.after)
	if t.input == inputWhole {
		all = append(all, t.inputs[0])
	}
	if t.input == inputList || t.each != nil && t.each.kind == eachOutputs {
		all = append(all, t.inputs...)
	}
	return all
}

func randomFlow(rng *rand.Rand, name, module string, size int) *flowPlan {
	prefix := strings.TrimPrefix(name, "f") // names are different in all flows
	f := &flowPlan{name: name, module: module, parts: map[flows.Part]*partPlan{flows.PartMain: randomPart(rng, prefix, flows.PartMain, size)}, priority: rng.IntN(3), broken: chance(rng, 15), onLimit: flows.LimitQueue}
	for _, part := range hookParts {
		if chance(rng, 2) {
			f.parts[part] = randomPart(rng, prefix, part, 1+rng.IntN(min(size, 4)))
		}
	}
	if chance(rng, 4) {
		f.timeout = pick(rng, time.Second, 5*time.Second, 20*time.Second, time.Minute)
	}
	if chance(rng, 3) {
		f.limit, f.keyed = 1+rng.IntN(2), chance(rng, 2)
	}
	return f
}

// hookParts are the parts that may follow the main tasks.
var (
	hookParts = []flows.Part{flows.PartOnFailure, flows.PartOnSuccess, flows.PartFinally}
	allParts  = append([]flows.Part{flows.PartMain}, hookParts...)
)

// randomTask is a task of a part, with the references that are given to it.
func randomTask(rng *rand.Rand, name string, part flows.Part, after, inputs []string) *taskPlan {
	t := &taskPlan{
		name: name, part: part, after: after, inputs: inputs, runOn: flows.RunOnSuccess,
		guest: randomGuest(rng), priority: rng.IntN(3), goesOn: chance(rng, 8), when: randomWhen(rng, after),
		timeout: pick(rng, time.Second, 5*time.Second, time.Minute),
		retry: run.RetryPolicy{
			Attempts: 1 + rng.IntN(4), Backoff: pick(rng, run.Exponential, run.Constant),
			Delay: pick(rng, time.Millisecond, time.Second, 10*time.Second), Max: pick(rng, 2*time.Second, time.Minute),
		},
		again: pick(rng, againAsItSays, againAsItSays, againAsItSays, againAsItSays, againAsItSays, againEarly, againFailed, againBroken),
	}
	if chance(rng, 4) {
		t.each, t.goesOn = randomEach(rng, inputs), chance(rng, 3)
		t.guest.large = false
	}
	t.input = randomInput(rng, t)
	if t.each == nil && chance(rng, 7) {
		t.become(randomWait(rng))
	}
	if len(t.upstream()) > 0 {
		t.runOn = pick(rng, flows.RunOnSuccess, flows.RunOnSuccess, flows.RunOnSuccess, flows.RunOnSuccess, flows.RunOnFailure, flows.RunAlways)
	}
	return t
}

func randomWhen(rng *rand.Rand, after []string) whenKind {
	w := pick(rng, whenAlways, whenAlways, whenAlways, whenAlways, whenAlways, whenAlways, whenAlways, whenNever, whenPayload, whenPayload, whenState, whenState)
	switch {
	case w == whenState && len(after) == 0:
		return whenAlways
	case chance(rng, 40):
		return whenBroken
	}
	return w
}

func randomInput(rng *rand.Rand, t *taskPlan) inputKind {
	switch {
	case chance(rng, 20):
		return inputBroken
	case t.each != nil && chance(rng, 2):
		return inputItem
	case len(t.inputs) == 0:
		return inputNone
	}
	return pick(rng, inputWhole, inputList)
}

func randomGuest(rng *rand.Rand) guestPlan {
	g := guestPlan{takes: pick(rng, 0, 0, time.Millisecond, 100*time.Millisecond, time.Second, 3*time.Second), large: chance(rng, 12)}
	if chance(rng, 3) {
		g.bad = pick(rng, 1, 1, 2, 3, 99)
		g.outcome = pick(rng, run.OutcomeFailed, run.OutcomeFailed, run.OutcomeTrapped, run.OutcomeTimedOut, run.OutcomeLost)
		g.again = !chance(rng, 4) || g.outcome != run.OutcomeFailed
	}
	if g.outcome == run.OutcomeLost {
		g.bad = 1
	}
	if chance(rng, 15) {
		g.stubborn = pick(rng, 3*time.Second, 12*time.Second)
	}
	g.deaf = chance(rng, 10) && g.outcome != run.OutcomeTimedOut
	return g
}

// expects reports whether an attempt that is left alone can end so. One whose
// deadline comes late may end by itself before.
func (t *taskPlan) expects(attempt int, o run.Outcome, late bool) bool {
	bad := attempt <= t.guest.bad
	switch {
	case o == run.OutcomeTimedOut && t.guest.takes >= t.timeout:
		return true
	case t.guest.takes > t.timeout && !late && !t.guest.deaf && !(bad && t.guest.outcome == run.OutcomeTimedOut):
		return false
	case bad:
		return o == t.guest.outcome
	}
	return o == run.OutcomeSucceeded
}

// output is what the guest gives when all is well.
func (t *taskPlan) output() json.RawMessage {
	text := []byte(`"` + t.ref().Label() + `"`)
	if t.guest.large {
		text = append(bytes.Repeat([]byte(" "), run.BlobSize), text...)
	}
	return text
}

var errHost = errors.New("the host is broken")

func (t *taskPlan) invoke(ctx context.Context, call run.Call) (run.Result, error) {
	bad := call.Attempt <= t.guest.bad
	took := t.guest.takes
	if bad && t.guest.outcome == run.OutcomeTimedOut {
		took = 2 * t.timeout
	}
	if t.guest.deaf {
		time.Sleep(took)
	} else if result, err := takes(took)(ctx, call); err != nil || result.Failure != nil {
		time.Sleep(t.guest.stubborn)
		return result, err
	}
	switch {
	case bad && t.guest.outcome == run.OutcomeLost:
		return run.Result{}, errHost
	case bad:
		return fails(t.guest.outcome, t.guest.again), nil
	}
	return gives(t.output()), nil
}

func chance(rng *rand.Rand, oneIn int) bool { return rng.IntN(oneIn) == 0 }

func pick[T any](rng *rand.Rand, from ...T) T { return from[rng.IntN(len(from))] }

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
