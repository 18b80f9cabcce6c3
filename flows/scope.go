package flows

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/zclconf/go-cty/cty"

	"github.com/flowhost/flowhost/flows/internal/budget"
	"github.com/flowhost/flowhost/flows/internal/ctyjson"
	"github.com/flowhost/flowhost/run"
)

// Scope holds the values of one run as expressions see them. JSON is converted
// when an expression first needs it, and then kept. It is not safe for
// concurrent use.
type Scope struct {
	flow    *Flow
	run     *run.Run
	failure *run.Failure
	item    *run.Item // of the fan-out whose arguments are being evaluated

	// All of these are nil until they are needed: most runs need the first only.
	settled []*run.TaskRun  // by number of the task or group
	kept    map[ref]kept    // values that were costly to make, each in an object
	locals  map[*local]kept // computed so far
	scanned map[ref]int     // how often large JSON was scanned

	gathered map[*run.TaskRun]json.RawMessage // outputs of fan-outs
	payload  json.RawMessage                  // of the stated type

	// The evaluation that is under way: all that it needs shares one budget.
	budget *budget.Budget
	own    budget.Budget

	trial       int         // units that an evaluation may cost; 0 for all of them
	short       bool        // an evaluation needed more
	interrupted atomic.Bool // set by other goroutines
}

// kept is a value that was made before. Whoever uses it again is charged again: an
// evaluation has the same outcome, whatever was evaluated before it.
type kept struct {
	value cty.Value
	cost  int
}

// begin starts an evaluation, unless one is under way that this one is a part of.
func (s *Scope) begin() bool {
	if s.budget != nil {
		return false
	}
	s.own = *budget.Of(cmp.Or(s.trial, budget.Max))
	s.own.Interruptible(&s.interrupted)
	s.budget = &s.own
	return true
}

func (s *Scope) end(begun bool) {
	if begun {
		s.note()
		s.budget = nil
	}
}

// note notes that a trial has not enough.
func (s *Scope) note() { s.short = s.short || s.trial > 0 && s.budget.Err() == budget.ErrCost }

// Try calls f, whose evaluations may cost so many units each, about as many microseconds.
// It reports false if one needed more. Then what f has found out is wrong: the caller calls
// f again, by itself, where that may take up to a quarter of a second.
func (s *Scope) Try(units int, f func()) bool {
	t := s.BeginTrial(units)
	f()
	return t.End()
}

// Trial is what [Scope.Try] does, for a caller that wants no function.
type Trial struct {
	scope   *Scope
	scanned map[ref]int // before
}

// BeginTrial begins a trial.
func (s *Scope) BeginTrial(units int) Trial {
	t := Trial{s, maps.Clone(s.scanned)}
	s.trial, s.short = units, false
	return t
}

// End ends the trial, and reports whether the units were enough.
func (t Trial) End() bool {
	s := t.scope
	s.trial = 0
	if s.short {
		s.scanned = t.scanned
	}
	return !s.short
}

// Interrupt ends the evaluation that is under way on another goroutine, and all that
// follow, with failures that mean nothing, until Continue.
func (s *Scope) Interrupt() { s.interrupted.Store(true) }

// Continue ends the effect of Interrupt.
func (s *Scope) Continue() { s.interrupted.Store(false) }

// Scope makes the scope of a run, which must be one of this flow. The run's
// params, trigger and times are read when they are needed.
func (f *Flow) Scope(r *run.Run) *Scope { return &Scope{flow: f, run: r} }

// Settle makes the end of a task visible to expressions, or that of a group, whose
// name begins with "group.".
func (s *Scope) Settle(t *run.TaskRun) {
	output, known := s.flow.outputs[t.Task]
	if !known {
		return
	}
	if s.settled == nil {
		s.settled = make([]*run.TaskRun, len(s.flow.outputs))
	}
	s.settled[output.number] = t
	errors := output
	errors.attribute = "errors"
	delete(s.kept, output)
	delete(s.kept, errors)
	maps.DeleteFunc(s.locals, func(l *local, _ kept) bool { return l.expr.dependsOn(t.Task) })
}

func (x *expression) dependsOn(task string) bool {
	return slices.ContainsFunc(x.dependencies, func(u dependency) bool { return u.task == task })
}

// Failed sets what tasks of on_failure and finally see as error.
func (s *Scope) Failed(f *run.Failure) { s.failure = f }

// task is what is known of a task. One that has not ended, which only tasks of
// on_failure can meet, is waiting.
func (s *Scope) task(number int) *run.TaskRun {
	if s.settled != nil && s.settled[number] != nil {
		return s.settled[number]
	}
	return &run.TaskRun{State: run.Waiting}
}

func (s *Scope) local(l *local) (cty.Value, error) {
	if l.expr.roots&runRoots == 0 {
		return l.value, nil
	}
	defer s.end(s.begin())
	if known, ok := s.locals[l]; ok {
		return known.value, s.budget.Charge(known.cost)
	}
	before := s.budget.Left()
	v, diags := l.expr.evaluate(s.flow.base, s, s.budget)
	if diags.HasErrors() {
		return cty.NilVal, diags
	}
	if s.locals == nil {
		s.locals = map[*local]kept{}
	}
	s.locals[l] = kept{v, before - s.budget.Left()}
	return v, nil
}

// value gives a run value.
func (s *Scope) value(w ref) (cty.Value, error) {
	if !w.costly() {
		return s.fresh(w)
	}
	v, err := s.single(w)
	if err != nil {
		return cty.NilVal, err
	}
	return v.GetAttr(w.last()), nil
}

// single keeps what is costly in the form in which most expressions need it.
func (s *Scope) single(w ref) (cty.Value, error) {
	defer s.end(s.begin())
	if known, ok := s.kept[w]; ok {
		return known.value, s.budget.Charge(known.cost)
	}
	before := s.budget.Left()
	made, err := s.fresh(w)
	if err != nil {
		return cty.NilVal, err
	}
	v := cty.ObjectVal(map[string]cty.Value{w.last(): made})
	if !w.costly() {
		return v, nil
	}
	if s.kept == nil {
		s.kept = map[ref]kept{}
	}
	s.kept[w] = kept{v, before - s.budget.Left()}
	return v, nil
}

// costly reports whether a value is worth keeping, and may be kept until the task
// that it belongs to is settled.
func (w ref) costly() bool {
	switch w.root.bit {
	case rootParam:
		return true
	case rootTrigger:
		return w.name == "payload" || w.name == "headers"
	}
	return w.attribute == "output" || w.attribute == "errors" || w.attribute == "payload"
}

// fresh makes a run value.
func (s *Scope) fresh(w ref) (cty.Value, error) {
	switch w.root.bit {
	case rootParam:
		return s.param(w.name)
	case rootTrigger:
		return s.triggerValue(w.name)
	case rootTask, rootGroup, rootWait:
		return s.taskValue(w)
	case rootEach:
		return s.itemValue(w.name)
	case rootRun:
		return s.runValue(w.name), nil
	}
	return s.errorValue(w.name), nil
}

// recorded is the JSON of a task's output, the trigger's payload, a param or an
// item's value, and null when there is none. All but a payload of a stated type are
// as they were recorded.
func (s *Scope) recorded(w ref) json.RawMessage {
	var bytes json.RawMessage
	switch {
	case w.root.bit == rootTrigger:
		if w.name == "payload" {
			bytes = s.payloadJSON()
		}
	case w.root.bit == rootParam:
		bytes = s.run.Params[w.name]
	case w.root.bit == rootEach:
		if s.item != nil {
			bytes = s.item.Value
		}
	case s.settled != nil && s.settled[w.number] != nil:
		bytes = s.output(s.settled[w.number])
	}
	if len(bytes) == 0 {
		return json.RawMessage("null")
	}
	return bytes
}

// output is that of a task or a group that is settled. Those of fan-outs and groups
// are put together once.
func (s *Scope) output(t *run.TaskRun) json.RawMessage {
	name, group := strings.CutPrefix(t.Task, "group.")
	if t.Items == nil && !group {
		return t.Output
	}
	if known, ok := s.gathered[t]; ok {
		return known
	}
	if s.gathered == nil {
		s.gathered = map[*run.TaskRun]json.RawMessage{}
	}
	var all json.RawMessage
	if group {
		all = s.groupOutput(s.flow.groups[name], t)
	} else {
		all = s.run.Gather(t)
	}
	s.gathered[t] = all
	return all
}

// groupOutput is that of the member that succeeded first, where the mode looks for
// one, or an object by member. It is nil unless the group has succeeded.
func (s *Scope) groupOutput(g *Group, t *run.TaskRun) json.RawMessage {
	if t.State != run.Succeeded {
		return nil
	}
	if g.FirstWins() {
		for _, m := range g.Members {
			end := s.task(m.output().number)
			if end.State == run.Succeeded && end.FinishedAt.Equal(t.FinishedAt) {
				return s.output(end)
			}
		}
		return nil
	}
	out := []byte{'{'}
	for _, m := range g.Members {
		output := s.output(s.task(m.output().number))
		if len(output) == 0 {
			output = json.RawMessage("null")
		}
		out = appendField(out, m.Name(), output)
	}
	return append(out, '}')
}

func decodeOrNull(src json.RawMessage) (cty.Value, error) {
	if len(src) == 0 {
		return cty.NullVal(cty.DynamicPseudoType), nil
	}
	return decodeJSON(src)
}

// decodeOrNull opens JSON for an expression.
func (s *Scope) decodeOrNull(src json.RawMessage) (cty.Value, error) {
	if len(src) == 0 {
		return cty.NullVal(cty.DynamicPseudoType), nil
	}
	if size, stored := run.StoredSize(src); stored {
		return cty.NilVal, &storedError{size}
	}
	bound := DefaultOpened
	if s.flow != nil { // tests of flows have values without one
		bound = s.flow.opened
	}
	if len(src) > bound {
		return cty.NilVal, &sizeError{len(src), bound}
	}
	defer s.end(s.begin())
	return ctyjson.Decode(src, s.budget)
}

// attempted is what retry { when } sees: a scope in which error is the end of an
// attempt.
type attempted struct {
	*Scope
	failure *run.Failure
	attempt int
}

func (a attempted) value(w ref) (cty.Value, error) {
	if w.root.bit != rootError {
		return a.Scope.value(w)
	}
	if w.name == "attempt" {
		return cty.NumberIntVal(int64(a.attempt)), nil
	}
	v, err := failureValue(a.failure, w.name, a.decodeOrNull)
	if err != nil {
		err = fmt.Errorf("error.details is %w", err)
	}
	return v, err
}

func (a attempted) single(w ref) (cty.Value, error) {
	if w.root.bit != rootError {
		return a.Scope.single(w)
	}
	return single(w, a)
}
