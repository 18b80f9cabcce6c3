package graph

import "github.com/flowhost/flowhost/flows"

type (
	File struct {
		Flows []graphFlow `json:"flows"`
	}
	graphFlow struct {
		Flow      string       `json:"flow"`
		Tasks     []graphTask  `json:"tasks"` // in topological order, also those in groups
		OnFailure []graphTask  `json:"on_failure"`
		OnSuccess []graphTask  `json:"on_success"`
		Finally   []graphTask  `json:"finally"`
		Groups    []graphGroup `json:"groups"` // of all parts, each before those within it
	}
	graphTask struct {
		Task        string        `json:"task"`
		After       []string      `json:"after"` // names of tasks, and of groups after "group."
		RunOn       flows.RunOn   `json:"run_on"`
		Plugin      string        `json:"plugin,omitempty"` // as the flow file names its module
		Flow        string        `json:"flow,omitempty"`   // that the task runs, in place of a function
		Wait        flows.WaitFor `json:"wait,omitempty"`   // what ends a wait
		Function    string        `json:"function,omitempty"`
		Limits      []string      `json:"limits,omitempty"`      // full names
		Connections []string      `json:"connections,omitempty"` // that the task is granted
		At          string        `json:"at"`                    // "orders.hcl:14"
		Group       string        `json:"group,omitempty"`       // that contains it
		ForEach     bool          `json:"for_each,omitempty"`
		MaxParallel int           `json:"max_parallel,omitempty"`
	}
	graphGroup struct {
		Group       string          `json:"group"`
		Part        flows.Part      `json:"part"`
		Mode        flows.GroupMode `json:"mode"`
		After       []string        `json:"after"`
		Members     []string        `json:"members"`      // in declared order, named as in after
		In          string          `json:"in,omitempty"` // the group that contains it
		MaxParallel int             `json:"max_parallel,omitempty"`
		At          string          `json:"at"`
	}
)

// JSON is what --format json prints.
func JSON(chosen []*flows.Flow) File {
	out := File{Flows: []graphFlow{}}
	for _, f := range chosen {
		out.Flows = append(out.Flows, flowJSON(f))
	}
	return out
}

func flowJSON(f *flows.Flow) graphFlow {
	out := graphFlow{
		Flow: f.Name, Tasks: []graphTask{}, OnFailure: []graphTask{}, OnSuccess: []graphTask{}, Finally: []graphTask{}, Groups: []graphGroup{},
	}
	lists := map[flows.Part]*[]graphTask{
		flows.PartMain: &out.Tasks, flows.PartOnFailure: &out.OnFailure, flows.PartOnSuccess: &out.OnSuccess, flows.PartFinally: &out.Finally,
	}
	after := map[string][]string{}
	for _, e := range f.Edges() {
		after[e.To] = append(after[e.To], e.From)
	}
	for _, s := range f.Sections {
		for _, i := range s.Graph.Order() {
			if t := s.Nodes[i].Task; t != nil {
				*lists[s.Part] = append(*lists[s.Part], taskJSON(t, after[t.Name]))
			}
		}
		for _, g := range s.Groups {
			out.Groups = append(out.Groups, groupJSON(g, s.Part, after["group."+g.Name]))
		}
	}
	return out
}

func taskJSON(t *flows.Task, after []string) graphTask {
	out := graphTask{
		Task: t.Name, After: append([]string{}, after...), RunOn: t.RunOn, Plugin: t.Plugin.Source, Function: t.Function, At: t.At(),
		Flow: t.Flow, Group: groupName(t.Group), ForEach: t.FanOut, MaxParallel: t.MaxParallel,
	}
	for _, l := range t.LimitedBy {
		out.Limits = append(out.Limits, l.Name)
	}
	out.Connections = t.Grants.Connections
	if t.Wait != nil {
		out.Wait = t.Wait.For
	}
	return out
}

func groupJSON(g *flows.Group, part flows.Part, after []string) graphGroup {
	out := graphGroup{
		Group: g.Name, Part: part, Mode: g.Mode, After: append([]string{}, after...), Members: []string{},
		In: groupName(g.Parent), MaxParallel: g.MaxParallel, At: g.At(),
	}
	for _, m := range g.Members {
		name := m.Name()
		if m.Group != nil {
			name = "group." + name
		}
		out.Members = append(out.Members, name)
	}
	return out
}

func groupName(g *flows.Group) string {
	if g == nil {
		return ""
	}
	return g.Name
}
