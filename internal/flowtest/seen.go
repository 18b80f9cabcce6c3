package flowtest

import (
	"encoding/json"
	"strings"

	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
)

// seen is what the events of runs tell that their records do not, or too late.
type seen struct {
	runs   map[run.ID]*seenRun                // that are not finished
	groups map[run.ID]map[string]*run.TaskRun // by run of the tested flow and name: those that have ended
}

// seenRun is an open run of the tested flow, or of a sub-flow of one.
type seenRun struct {
	id      run.ID
	root    run.ID                         // the run of the tested flow
	within  string                         // before the names of its tasks: "release/"
	items   map[string]map[string]run.Item // by task that is fanned out, and key
	waiting map[string]bool                // waits that go on, by path
}

func newSeen() *seen {
	return &seen{runs: map[run.ID]*seenRun{}, groups: map[run.ID]map[string]*run.TaskRun{}}
}

func (s *seen) recorded(e run.Event) {
	switch d := e.Data.(type) {
	case *run.Submitted:
		r := &seenRun{id: e.Run, root: e.Run, items: map[string]map[string]run.Item{}, waiting: map[string]bool{}}
		if d.Parent != nil {
			r.root, r.within = s.runs[d.Parent.Run].root, s.path(d.Parent.Run, d.Parent.Task)+"/"
		}
		s.runs[e.Run] = r
	case *run.TaskExpanded:
		s.runs[e.Run].items[d.Task] = itemsOf(d.Items)
	case *run.WaitStarted:
		s.runs[e.Run].waiting[s.wait(e.Run, d.Task)] = true
	case *run.WaitEnded:
		delete(s.runs[e.Run].waiting, s.wait(e.Run, d.Task))
	case *run.Finished:
		delete(s.runs, e.Run)
	}
}

// itemsOf are none where they cannot be read: the engine reports that.
func itemsOf(all json.RawMessage) map[string]run.Item {
	items, _ := run.Items(all)
	byKey := make(map[string]run.Item, len(items))
	for _, item := range items {
		byKey[item.Key] = item
	}
	return byKey
}

func (s *seen) groupEnded(of run.ID, group *run.TaskRun) {
	r := s.runs[of]
	if r == nil || r.root != of {
		return
	}
	if s.groups[of] == nil {
		s.groups[of] = map[string]*run.TaskRun{}
	}
	s.groups[of][strings.TrimPrefix(group.Task, "group.")] = group
}

// path is how tests name a task of an open run.
func (s *seen) path(of run.ID, task string) string { return s.runs[of].within + task }

// wait is how tests name a wait of an open run.
func (s *seen) wait(of run.ID, task string) string {
	return s.path(of, strings.TrimPrefix(task, flows.WaitPrefix))
}

// called is a call as the test sees it.
func (s *seen) called(call *run.Call) flows.Called {
	c := flows.Called{Call: call, Path: s.path(call.Run, call.Task)}
	if item, ok := s.runs[call.Run].items[call.Task][call.Key]; ok {
		c.Item = &item
	}
	return c
}
