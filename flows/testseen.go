package flows

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/flowhost/flowhost/run"
)

// Ran is a run of a test.
type Ran struct {
	*run.Record
	Groups map[string]*run.TaskRun // by name: what has become of those that have ended
}

// seen is what assertions see of runs, the first accepted first.
func (t *Test) seen(all []Ran) (map[string]cty.Value, error) {
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b Ran) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), a.Trigger.Time.Compare(b.Trigger.Time))
	})
	runs := make([]cty.Value, len(all))
	values := map[string]cty.Value{}
	for i, r := range all {
		attrs, err := runAttributes(r.Record)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			values["run"] = cty.ObjectVal(attrs)
		}
		parts, err := (&seenRun{ran: r, flow: t.Flow}).parts()
		if err != nil {
			return nil, err
		}
		for _, of := range testedRoots {
			attrs[of.name] = parts[of.name]
			if i == 0 {
				values[of.name] = parts[of.name]
			}
		}
		runs[i] = cty.ObjectVal(attrs)
	}
	values["runs"] = cty.TupleVal(runs)
	return values, nil
}

func runAttributes(r *run.Record) (attrs map[string]cty.Value, err error) {
	attrs = map[string]cty.Value{
		"id": cty.StringVal(string(r.Run)), "flow": cty.StringVal(r.Flow), "state": cty.StringVal(string(r.State)),
		"created_at": timeValue(r.CreatedAt), "scheduled_at": timeValue(r.Trigger.Time),
		"started_at": timeOrNull(r.StartedAt), "finished_at": timeOrNull(r.FinishedAt), "duration": between(r.StartedAt, r.FinishedAt),
	}
	params := map[string]cty.Value{}
	for name, raw := range r.Params {
		if params[name], err = decodeOrNull(raw); err != nil {
			return nil, err
		}
	}
	attrs["params"] = cty.ObjectVal(params)
	if attrs["output"], err = decodeOrNull(r.Output); err != nil {
		return nil, err
	}
	attrs["error"], err = endedWith(blamed(r.Error))
	return attrs, err
}

// seenRun makes values of what a run is made of.
type seenRun struct {
	ran   Ran
	flow  *Flow
	tasks map[string]*run.TaskRecord                 // by name, waits too
	items map[string]map[string]*run.TaskRecord      // by task and key
	made  map[string]map[string]map[string]cty.Value // attributes by root and name
}

// parts are objects by name, by root.
func (s *seenRun) parts() (map[string]cty.Value, error) {
	s.index()
	s.made = map[string]map[string]map[string]cty.Value{"task": {}, "wait": {}, "group": {}}
	for _, name := range keys(s.flow.tasks) {
		spec, t := s.flow.tasks[name], s.tasks[name]
		if t == nil {
			t = &run.TaskRecord{Task: name, State: run.Waiting}
		}
		attrs, err := s.attributes(spec, t)
		if err != nil {
			return nil, err
		}
		s.made[spec.output.root.name][spec.output.name] = attrs
	}
	for _, name := range keys(s.flow.groups) {
		if err := s.group(s.flow.groups[name]); err != nil {
			return nil, err
		}
	}
	parts := map[string]cty.Value{}
	for root, all := range s.made {
		objects := map[string]cty.Value{}
		for name, attrs := range all {
			objects[name] = cty.ObjectVal(attrs)
		}
		parts[root] = cty.ObjectVal(objects)
	}
	return parts, nil
}

func (s *seenRun) index() {
	s.tasks, s.items = map[string]*run.TaskRecord{}, map[string]map[string]*run.TaskRecord{}
	for i := range s.ran.Tasks {
		t := &s.ran.Tasks[i]
		if t.Key == nil {
			s.tasks[t.Task] = t
			continue
		}
		if s.items[t.Task] == nil {
			s.items[t.Task] = map[string]*run.TaskRecord{}
		}
		s.items[t.Task][*t.Key] = t
	}
}

func (s *seenRun) attributes(spec *Task, t *run.TaskRecord) (map[string]cty.Value, error) {
	attrs, err := taskAttributesOf(t)
	switch {
	case err != nil:
		return nil, err
	case spec.isWait():
		attrs["payload"] = attrs["output"]
		return selected(attrs, testedWaitAttributes), nil
	}
	attrs["items"], attrs["errors"] = cty.NullVal(cty.DynamicPseudoType), cty.EmptyTupleVal
	if t.Items != nil {
		attrs["items"], attrs["errors"], err = s.itemsOf(t)
	}
	return attrs, err
}

func selected(attrs map[string]cty.Value, names []string) map[string]cty.Value {
	some := map[string]cty.Value{}
	for _, name := range names {
		some[name] = attrs[name]
	}
	return some
}

// itemsOf are the items of a fan-out, a list or an object as its output, and the
// failures of those that did not succeed.
func (s *seenRun) itemsOf(t *run.TaskRecord) (all, failures cty.Value, err error) {
	items, err := run.Items(t.Items)
	if err != nil {
		return cty.NilVal, cty.NilVal, err
	}
	var list, failed []cty.Value
	named := map[string]cty.Value{}
	for _, item := range items {
		one := s.items[t.Task][item.Key]
		if one == nil {
			one = &run.TaskRecord{Task: t.Task, State: run.Waiting}
		}
		attrs, err := taskAttributesOf(one)
		if err != nil {
			return cty.NilVal, cty.NilVal, err
		}
		v := cty.ObjectVal(attrs)
		list, named[item.Key] = append(list, v), v
		if one.Error != nil {
			failure, err := itemFailure(&item, one.Error, decodeOrNull)
			if err != nil {
				return cty.NilVal, cty.NilVal, err
			}
			failed = append(failed, failure)
		}
	}
	if t.Items[0] == '{' {
		return cty.ObjectVal(named), cty.TupleVal(failed), nil
	}
	return cty.TupleVal(list), cty.TupleVal(failed), nil
}

// group makes the attributes of a group, and of those in it.
func (s *seenRun) group(g *Group) error {
	if s.made["group"][g.Name] != nil {
		return nil
	}
	for _, m := range g.Members {
		if m.Group != nil {
			if err := s.group(m.Group); err != nil {
				return err
			}
		}
	}
	attrs := map[string]cty.Value{"state": cty.StringVal(string(run.Waiting)), "output": cty.NullVal(cty.DynamicPseudoType)}
	end := s.ran.Groups[g.Name]
	switch {
	case end != nil:
		attrs["state"] = cty.StringVal(string(end.State))
		if end.State == run.Succeeded {
			attrs["output"] = s.groupOutput(g, end)
		}
	case slices.ContainsFunc(g.Leaves(), func(t *Task) bool { return s.tasks[t.Name] != nil && s.tasks[t.Name].State != run.Waiting }):
		attrs["state"] = cty.StringVal(string(run.Running))
	}
	var failure *run.Failure
	if end != nil {
		failure = end.Failure
	}
	var err error
	attrs["error"], err = endedWith(failure)
	s.made["group"][g.Name] = attrs
	return err
}

// groupOutput is what [Scope] gives as the output of a group that has succeeded.
func (s *seenRun) groupOutput(g *Group, end *run.TaskRun) cty.Value {
	outputs := map[string]cty.Value{}
	for _, m := range g.Members {
		state, finished, output := s.member(m)
		if g.FirstWins() && state == run.Succeeded && finished.Equal(end.FinishedAt) {
			return output
		}
		outputs[m.Name()] = output
	}
	if g.FirstWins() {
		return cty.NullVal(cty.DynamicPseudoType)
	}
	return cty.ObjectVal(outputs)
}

func (s *seenRun) member(m Member) (state run.State, finished time.Time, output cty.Value) {
	if m.Group != nil {
		if end := s.ran.Groups[m.Group.Name]; end != nil {
			state, finished = end.State, end.FinishedAt
		}
		return state, finished, s.made["group"][m.Group.Name]["output"]
	}
	if t := s.tasks[m.Task.Name]; t != nil {
		state = t.State
		if t.FinishedAt != nil {
			finished = *t.FinishedAt
		}
	}
	of := m.Task.output
	return state, finished, s.made[of.root.name][of.name][of.attribute]
}

func taskAttributesOf(t *run.TaskRecord) (map[string]cty.Value, error) {
	attrs := map[string]cty.Value{
		"state": cty.StringVal(string(t.State)), "attempts": cty.NumberIntVal(int64(t.Attempts)),
		"started_at": timeOrNull(t.StartedAt), "finished_at": timeOrNull(t.FinishedAt), "duration": between(t.StartedAt, t.FinishedAt),
	}
	for name, raw := range map[string]json.RawMessage{"input": t.Input, "output": t.Output} {
		v, err := decodeOrNull(raw)
		if err != nil {
			return nil, fmt.Errorf("the %s of task %s is %w", name, t.Task, err)
		}
		attrs[name] = v
	}
	var err error
	attrs["error"], err = endedWith(t.Error)
	return attrs, err
}

// endedWith is a failure with the task that it came from, null for none.
func endedWith(f *run.Failure) (cty.Value, error) {
	if f == nil {
		return cty.NullVal(cty.DynamicPseudoType), nil
	}
	attrs, err := failureValues(f, decodeOrNull)
	if err != nil {
		return cty.NilVal, fmt.Errorf("the details of a failure are %w", err)
	}
	attrs["task"] = textOrNull(f.Task)
	return cty.ObjectVal(attrs), nil
}

func timeOrNull(t *time.Time) cty.Value {
	if t == nil {
		return cty.NullVal(cty.String)
	}
	return timeValue(*t)
}

// between is seconds, as everywhere in the language.
func between(from, to *time.Time) cty.Value {
	if from == nil || to == nil {
		return cty.NullVal(cty.Number)
	}
	return cty.NumberFloatVal(to.Sub(*from).Seconds())
}
