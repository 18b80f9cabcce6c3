package flows

import (
	"encoding/json"
	"fmt"
	"maps"
	"time"

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

	settled map[string]*run.TaskRun
	tasks   map[string]cty.Value // converted so far
	roots   map[string]cty.Value
	locals  map[*local]cty.Value
}

// Scope makes the scope of a run, which must be one of this flow. The run's
// params, trigger and times are read when they are needed.
func (f *Flow) Scope(r *run.Run) *Scope {
	return &Scope{
		flow: f, run: r,
		settled: map[string]*run.TaskRun{},
		tasks:   map[string]cty.Value{},
		roots:   map[string]cty.Value{},
		locals:  map[*local]cty.Value{},
	}
}

// Settle makes the end of a task visible to expressions.
func (s *Scope) Settle(t *run.TaskRun) {
	s.settled[t.Task] = t
	delete(s.tasks, t.Task)
	maps.DeleteFunc(s.locals, func(l *local, _ cty.Value) bool { return l.expr.uses(t.Task) })
}

func (x *expression) uses(task string) bool {
	for _, u := range x.needs {
		if u.task == task {
			return true
		}
	}
	return false
}

// Failed sets what tasks of on_failure see as error.
func (s *Scope) Failed(f *run.Failure) {
	s.failure = f
	delete(s.roots, "error")
}

func (s *Scope) task(name string) (cty.Value, error) {
	if v, ok := s.tasks[name]; ok {
		return v, nil
	}
	v, err := taskValue(s.settled[name])
	if err != nil {
		return cty.NilVal, fmt.Errorf("the output of task %s is %w", name, err)
	}
	s.tasks[name] = v
	return v, nil
}

// taskValue is what task.NAME stands for. One that has not ended, which only
// tasks of on_failure can meet, is waiting.
func taskValue(t *run.TaskRun) (cty.Value, error) {
	if t == nil {
		t = &run.TaskRun{State: run.Waiting}
	}
	output, err := decodeOrNull(t.Output)
	if err != nil {
		return cty.NilVal, err
	}
	failure, err := failureValue(t.Failure)
	if err != nil {
		return cty.NilVal, err
	}
	var took time.Duration
	if !t.StartedAt.IsZero() && !t.FinishedAt.IsZero() {
		took = t.FinishedAt.Sub(t.StartedAt)
	}
	return cty.ObjectVal(map[string]cty.Value{
		"output": output, "error": failure, "state": cty.StringVal(string(t.State)),
		"attempts": cty.NumberIntVal(int64(t.Attempts)), "duration": cty.NumberFloatVal(took.Seconds()),
	}), nil
}

func failureValue(f *run.Failure) (cty.Value, error) {
	if f == nil {
		return cty.NullVal(cty.DynamicPseudoType), nil
	}
	details, err := decodeOrNull(f.Details)
	if err != nil {
		return cty.NilVal, err
	}
	return cty.ObjectVal(map[string]cty.Value{
		"outcome": cty.StringVal(string(f.Outcome)), "code": cty.StringVal(f.Code), "message": cty.StringVal(f.Message),
		"retryable": cty.BoolVal(f.Retryable), "details": details,
	}), nil
}

func decodeOrNull(src json.RawMessage) (cty.Value, error) {
	if len(src) == 0 {
		return cty.NullVal(cty.DynamicPseudoType), nil
	}
	return decodeJSON(src)
}

func (s *Scope) local(l *local) (cty.Value, error) {
	if l.expr.roots&runRoots == 0 {
		return l.value, nil
	}
	if v, ok := s.locals[l]; ok {
		return v, nil
	}
	v, diags := l.expr.evaluate(s.flow.base, s)
	if diags.HasErrors() {
		return cty.NilVal, diags
	}
	s.locals[l] = v
	return v, nil
}

func (s *Scope) root(name string) (cty.Value, error) {
	if v, ok := s.roots[name]; ok {
		return v, nil
	}
	v, err := s.makeRoot(name)
	if err == nil {
		s.roots[name] = v
	}
	return v, err
}

func (s *Scope) makeRoot(name string) (cty.Value, error) {
	switch name {
	case "param":
		return s.flow.paramValues(s.run.Params)
	case "trigger":
		return triggerValue(&s.run.Trigger)
	case "run":
		return s.runValue(), nil
	}
	return s.errorValue(), nil
}

func triggerValue(t *run.Trigger) (cty.Value, error) {
	payload, err := decodeOrNull(t.Payload)
	if err != nil {
		return cty.NilVal, fmt.Errorf("the trigger's payload is %w", err)
	}
	headers := cty.MapValEmpty(cty.List(cty.String))
	if len(t.Headers) > 0 {
		all := make(map[string]cty.Value, len(t.Headers))
		for name, values := range t.Headers {
			list := cty.ListValEmpty(cty.String)
			if len(values) > 0 {
				items := make([]cty.Value, len(values))
				for i, v := range values {
					items[i] = cty.StringVal(v)
				}
				list = cty.ListVal(items)
			}
			all[name] = list
		}
		headers = cty.MapVal(all)
	}
	return cty.ObjectVal(map[string]cty.Value{
		"kind": cty.StringVal(string(t.Kind)), "name": textOrNull(t.Name), "subject": textOrNull(t.Subject),
		"time": timeValue(t.Time), "headers": headers, "payload": payload,
	}), nil
}

func (s *Scope) runValue() cty.Value {
	labels := cty.MapValEmpty(cty.String)
	if len(s.flow.Labels) > 0 {
		all := make(map[string]cty.Value, len(s.flow.Labels))
		for name, label := range s.flow.Labels {
			all[name] = cty.StringVal(label)
		}
		labels = cty.MapVal(all)
	}
	return cty.ObjectVal(map[string]cty.Value{
		"id": cty.StringVal(string(s.run.ID)), "flow": cty.StringVal(s.flow.Name),
		"scheduled_at": timeValue(s.run.Trigger.Time), "started_at": timeValue(s.run.StartedAt), "labels": labels,
	})
}

func (s *Scope) errorValue() cty.Value {
	f := s.failure
	if f == nil {
		f = new(run.Failure)
	}
	attempt := 0
	if t := s.settled[f.Task]; t != nil {
		attempt = t.Attempts
	}
	return cty.ObjectVal(map[string]cty.Value{
		"task": textOrNull(f.Task), "outcome": cty.StringVal(string(f.Outcome)), "code": cty.StringVal(f.Code),
		"message": cty.StringVal(f.Message), "attempt": cty.NumberIntVal(int64(attempt)),
	})
}

func textOrNull(s string) cty.Value {
	if s == "" {
		return cty.NullVal(cty.String)
	}
	return cty.StringVal(s)
}

// timeValue writes a time as RFC 3339 in UTC, the form that formatdate and
// timeadd read.
func timeValue(t time.Time) cty.Value {
	if t.IsZero() {
		return cty.NullVal(cty.String)
	}
	return cty.StringVal(t.UTC().Format(time.RFC3339Nano))
}
