package plan

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
)

// action is a change of a flow, or of a part of one.
type action string

const (
	actionAdd    action = "add"
	actionChange action = "change"
	actionRemove action = "remove"
)

type (
	// Difference is what flow files would change on a host.
	Difference struct {
		Changes []flowChange   `json:"changes"`
		Since   time.Time      `json:"since"`           // when the host loaded what it has
		Fault   *api.LoadFault `json:"fault,omitempty"` // why it has not loaded its own files since
	}

	// flowChange is about one flow. Its parts are those that change.
	flowChange struct {
		Flow    string         `json:"flow"`
		Action  action         `json:"action"`
		Blocks  []blockChange  `json:"blocks,omitempty"`
		Modules []moduleChange `json:"modules,omitempty"`
		Grants  []grantChange  `json:"grants,omitempty"`

		Connections []connectionChange `json:"connections,omitempty"`
		Schedules   []scheduleChange   `json:"schedules,omitempty"`
	}

	blockChange struct {
		Block  string `json:"block"` // "task load", "variable region"
		Action action `json:"action"`
	}

	moduleChange struct {
		Source string `json:"source"`
		Before string `json:"before,omitempty"` // digests
		After  string `json:"after,omitempty"`
	}

	// connectionChange is about a connection that tasks of the flow are granted, in words
	// and without credentials.
	connectionChange struct {
		Connection string `json:"connection"`
		Before     string `json:"before,omitempty"`
		After      string `json:"after,omitempty"`
	}

	// grantChange is a right that a task gets or loses.
	grantChange struct {
		api.Right
		Grows bool `json:"grows"`
	}

	// scheduleChange is about when a schedule fires next; the zero time is never.
	scheduleChange struct {
		Trigger string    `json:"trigger"`
		Action  action    `json:"action"`
		Paused  bool      `json:"paused,omitempty"` // on the host, and it stays so
		Before  time.Time `json:"before,omitzero"`
		After   time.Time `json:"after,omitzero"`
	}
)

// Compare compares the flows of a host with a set.
func Compare(host api.Deployment, schedules []run.ScheduleStatus, set *flows.Set, now time.Time) Difference {
	d := Difference{Changes: []flowChange{}, Since: host.Since, Fault: host.Fault}
	after := DeployedFlows(set)
	added, changed, removed := ChangedFlows(host.Flows, after)
	note := func(names []string, a action) {
		for _, name := range names {
			before, after := flowNamed(host.Flows, name), flowNamed(after, name)
			c := flowChange{
				Flow: name, Action: a, Modules: moduleChanges(before.Modules, after.Modules),
				Connections: connectionChanges(before.Connections, after.Connections),
				Grants:      grantChanges(before.Rights, after.Rights), Schedules: scheduleChanges(name, schedules, set.Flow(name), now),
			}
			if a == actionChange {
				c.Blocks = blockChanges(before.Blocks, after.Blocks)
			}
			d.Changes = append(d.Changes, c)
		}
	}
	note(added, actionAdd)
	note(changed, actionChange)
	note(removed, actionRemove)
	slices.SortFunc(d.Changes, func(a, b flowChange) int { return strings.Compare(a.Flow, b.Flow) })
	return d
}

// flowNamed is the flow of that name, or none.
func flowNamed(all []api.DeployedFlow, name string) api.DeployedFlow {
	if i := slices.IndexFunc(all, func(f api.DeployedFlow) bool { return f.Flow == name }); i >= 0 {
		return all[i]
	}
	return api.DeployedFlow{}
}

// eitherOf are the keys of two maps, sorted.
func eitherOf(a, b map[string]string) []string {
	both := maps.Clone(a)
	if both == nil {
		both = map[string]string{}
	}
	maps.Copy(both, b)
	return slices.Sorted(maps.Keys(both))
}

func blockChanges(before, after map[string]string) []blockChange {
	var all []blockChange
	for _, name := range eitherOf(before, after) {
		was, is := before[name], after[name]
		switch {
		case was == is:
		case was == "":
			all = append(all, blockChange{name, actionAdd})
		case is == "":
			all = append(all, blockChange{name, actionRemove})
		default:
			all = append(all, blockChange{name, actionChange})
		}
	}
	return all
}

func moduleChanges(before, after map[string]string) []moduleChange {
	var all []moduleChange
	for _, source := range eitherOf(before, after) {
		if before[source] != after[source] {
			all = append(all, moduleChange{source, before[source], after[source]})
		}
	}
	return all
}

// grantChanges are the added and removed rights.
func grantChanges(before, after []api.Right) []grantChange {
	var all []grantChange
	for _, r := range after {
		if !covered(r, before) {
			all = append(all, grantChange{r, true})
		}
	}
	for _, r := range before {
		if !covered(r, after) {
			all = append(all, grantChange{r, false})
		}
	}
	return all
}

// connectionChanges are the connections of a flow that are added, removed, or lead elsewhere.
func connectionChanges(before, after map[string]string) []connectionChange {
	var all []connectionChange
	for _, name := range eitherOf(before, after) {
		if before[name] != after[name] {
			all = append(all, connectionChange{name, before[name], after[name]})
		}
	}
	return all
}

// Grows reports whether a task gets a right that it does not have.
func (d *Difference) Grows() bool { return slices.ContainsFunc(d.Changes, flowChange.grows) }

func (c flowChange) grows() bool {
	return slices.ContainsFunc(c.Grants, func(g grantChange) bool { return g.Grows })
}

// scheduleChanges are the schedules of a flow that fire at other times; f is nil
// if the flow is removed.
func scheduleChanges(flow string, all []run.ScheduleStatus, f *flows.Flow, now time.Time) []scheduleChange {
	changes := map[string]scheduleChange{}
	before := map[string]run.ScheduleStatus{}
	for _, s := range all {
		if s.Flow == flow {
			before[s.Trigger] = s
			changes[s.Trigger] = scheduleChange{Trigger: s.Trigger, Action: actionRemove, Before: s.Next, Paused: s.Pause != nil}
		}
	}
	if f != nil {
		for _, t := range f.Triggers {
			was, known := before[t.Name]
			switch {
			case t.Kind != run.TriggerSchedule:
			case known && was.Expression == t.Expression() && was.Zone == t.Zone && was.Enabled == t.Enabled:
				delete(changes, t.Name)
			case known:
				changes[t.Name] = scheduleChange{Trigger: t.Name, Action: actionChange, Before: was.Next, After: nextOf(t, now), Paused: was.Pause != nil}
			default:
				changes[t.Name] = scheduleChange{Trigger: t.Name, Action: actionAdd, After: nextOf(t, now)}
			}
		}
	}
	return slices.SortedFunc(maps.Values(changes), func(a, b scheduleChange) int { return cmp.Compare(a.Trigger, b.Trigger) })
}

// nextOf is when a schedule that begins now fires first.
func nextOf(t *flows.Trigger, now time.Time) time.Time {
	next, ok := t.Schedule.Next(now)
	if !t.Enabled || !ok {
		return time.Time{}
	}
	return next.UTC()
}
