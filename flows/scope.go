package flows

import (
	"encoding/json"
	"fmt"
	"maps"

	"github.com/zclconf/go-cty/cty"

	"github.com/flowhost/flowhost/run"
)

// Scope holds the values of one run as expressions see them. JSON is converted
// when an expression first needs it, and then kept. It is not safe for
// concurrent use.
type Scope struct {
	flow    *Flow
	run     *run.Run
	failure *run.Failure

	// All of these are nil until they are needed: most runs need the first only.
	settled []*run.TaskRun       // by number of the task
	kept    map[wanted]cty.Value // values that were costly to make, each in an object
	locals  map[*local]cty.Value // computed so far
	scanned map[wanted]int       // how often large JSON was scanned
}

// Scope makes the scope of a run, which must be one of this flow. The run's
// params, trigger and times are read when they are needed.
func (f *Flow) Scope(r *run.Run) *Scope { return &Scope{flow: f, run: r} }

// Settle makes the end of a task visible to expressions.
func (s *Scope) Settle(t *run.TaskRun) {
	spec := s.flow.tasks[t.Task]
	if spec == nil {
		return
	}
	if s.settled == nil {
		s.settled = make([]*run.TaskRun, len(s.flow.tasks))
	}
	s.settled[spec.number] = t
	if s.kept != nil {
		delete(s.kept, spec.output)
	}
	if s.locals != nil {
		maps.DeleteFunc(s.locals, func(l *local, _ cty.Value) bool { return l.expr.uses(t.Task) })
	}
}

func (x *expression) uses(task string) bool {
	for _, u := range x.needs {
		if u.task == task {
			return true
		}
	}
	return false
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
	if v, ok := s.locals[l]; ok {
		return v, nil
	}
	v, diags := l.expr.evaluate(s.flow.base, s, &meter{left: maxCost})
	if diags.HasErrors() {
		return cty.NilVal, diags
	}
	if s.locals == nil {
		s.locals = map[*local]cty.Value{}
	}
	s.locals[l] = v
	return v, nil
}

// value gives a run value.
func (s *Scope) value(w wanted) (cty.Value, error) {
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
func (s *Scope) single(w wanted) (cty.Value, error) {
	if v, ok := s.kept[w]; ok {
		return v, nil
	}
	made, err := s.fresh(w)
	if err != nil {
		return cty.NilVal, err
	}
	v := cty.ObjectVal(map[string]cty.Value{w.last(): made})
	if !w.costly() {
		return v, nil
	}
	if s.kept == nil {
		s.kept = map[wanted]cty.Value{}
	}
	s.kept[w] = v
	return v, nil
}

// costly reports whether a value is worth keeping, and may be kept until the task
// that it belongs to is settled.
func (w wanted) costly() bool {
	switch w.root.bit {
	case rootParam:
		return true
	case rootTrigger:
		return w.name == "payload" || w.name == "headers"
	}
	return w.attribute == "output" || w.attribute == "payload"
}

// fresh makes a run value anew.
func (s *Scope) fresh(w wanted) (cty.Value, error) {
	switch w.root.bit {
	case rootParam:
		return s.param(w.name)
	case rootTrigger:
		return s.triggerValue(w.name)
	case rootTask, rootWait:
		return s.taskValue(w)
	case rootRun:
		return s.runValue(w.name), nil
	}
	return s.errorValue(w.name), nil
}

// recorded is the JSON of a task's output, the trigger's payload or a param, and
// null when there is none.
func (s *Scope) recorded(w wanted) json.RawMessage {
	var bytes json.RawMessage
	switch {
	case w.root.bit == rootTrigger:
		bytes = s.run.Trigger.Payload
	case w.root.bit == rootParam:
		bytes = s.run.Params[w.name]
	case s.settled != nil && s.settled[w.number] != nil:
		bytes = s.settled[w.number].Output
	}
	if len(bytes) == 0 {
		return json.RawMessage("null")
	}
	return bytes
}

func decodeOrNull(src json.RawMessage) (cty.Value, error) {
	if len(src) == 0 {
		return cty.NullVal(cty.DynamicPseudoType), nil
	}
	return decodeJSON(src)
}

// attempted is what retry { when } sees: a scope in which error is the end of an
// attempt.
type attempted struct {
	*Scope
	failure *run.Failure
	attempt int
}

func (a attempted) value(w wanted) (cty.Value, error) {
	if w.root.bit != rootError {
		return a.Scope.value(w)
	}
	if w.name == "attempt" {
		return cty.NumberIntVal(int64(a.attempt)), nil
	}
	v, err := failureValue(a.failure, w.name)
	if err != nil {
		err = fmt.Errorf("error.details is %w", err)
	}
	return v, err
}

func (a attempted) single(w wanted) (cty.Value, error) {
	if w.root.bit != rootError {
		return a.Scope.single(w)
	}
	return single(w, a)
}
