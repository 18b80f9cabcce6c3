package flows

import (
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/flowhost/flowhost/flows/internal/diag"
)

// The names of tasks and waits in tests are paths: "build" is a task of the tested
// flow, and "release/build" one of the flow that its task "release" runs.

// lookup finds a task or wait and its flow, nil when there is none.
func (m *module) lookup(d *flowDecoder, path string, word *root) (*flowDecoder, *Task) {
	names := strings.Split(path, "/")
	for _, name := range names[:len(names)-1] {
		t := d.leaf(rootWord("task"), name)
		if t == nil || t.Child == nil {
			return nil, nil
		}
		d = m.decoderOf(t.Child)
	}
	return d, d.leaf(word, names[len(names)-1])
}

// named is lookup that reports what is wrong with the path.
func (s *exprContext) named(d *flowDecoder, path string, at hcl.Range, word *root) (*flowDecoder, *Task) {
	if of, t := s.module.lookup(d, path, word); t != nil {
		return of, t
	}
	above := ""
	for rest := path; ; {
		name, after, more := strings.Cut(rest, "/")
		kind := word
		if more {
			kind = rootWord("task")
		}
		t := d.leaf(kind, name)
		switch {
		case t == nil:
			s.diags.Add(RuleUnknownName, at, "Unknown name", "Flow %q has no %s %q.%s", d.flow.Name, kind.name, name, d.instead(kind, name, above))
			return nil, nil
		case t.Child == nil && t.callee() == "flow":
			return nil, nil // which flow, is reported where it is named
		case t.Child == nil:
			s.diags.Add(RuleReference, at, "Not a sub-flow", "Task %q of flow %q runs no flow, so there is nothing in it that could be called %q.", name, d.flow.Name, after)
			return nil, nil
		}
		d, above, rest = s.module.decoderOf(t.Child), above+name+"/", after
	}
}

// instead suggests what could be meant by a name that the flow does not have.
func (d *flowDecoder) instead(word *root, name, above string) string {
	switch {
	case word.bit == rootTask && d.tasks[WaitPrefix+strings.TrimPrefix(name, WaitPrefix)] != nil:
		return " It is a wait: these are not mocked, virtual time ends them, or a signal or approve block."
	case word.bit == rootWait && d.leaf(rootWord("task"), name) != nil:
		return " It is a task: a mock block defines what its calls do."
	}
	return diag.DidYouMean(name, above, d.leaves(word))
}

// task is the task at a path of the tested flow, nil when there is none.
func (t *Test) task(path string) *Task {
	f := t.Flow
	for {
		name, after, more := strings.Cut(path, "/")
		task := f.Task(name)
		if task == nil || !more {
			return task
		}
		if f = task.Child; f == nil {
			return nil
		}
		path = after
	}
}
