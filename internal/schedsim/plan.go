package schedsim

import (
	"time"

	"github.com/flowhost/flowhost/flows"
)

// plan is how runs of a flow go.
type plan struct {
	flow    *flows.Flow
	skipped []bool        // tasks that do not run when all others succeed, by node
	takes   time.Duration // how long a run takes that waits for nothing
	each    time.Duration // how long a task does
}

func newPlan(f *flows.Flow, takes time.Duration) *plan {
	p := &plan{flow: f, takes: takes, skipped: make([]bool, f.Graph.Len())}
	path, longest := make([]int, f.Graph.Len()), 0
	for _, node := range f.Graph.Order() {
		p.skipped[node] = p.skips(node)
		for _, up := range f.Graph.Upstream(node) {
			path[node] = max(path[node], path[up])
		}
		if !p.skipped[node] && !p.passes(node) {
			path[node]++
		}
		longest = max(longest, path[node])
	}
	if longest > 0 {
		p.each = takes / time.Duration(longest)
	}
	return p
}

// passes reports whether a node calls nothing: the beginnings and ends of groups, and
// waits. How long a wait is, only runs know: it is taken to end at once.
func (p *plan) passes(node int) bool {
	return node >= len(p.flow.Tasks) || p.flow.Tasks[node].Wait != nil
}

// skips reports whether a task is left out: it runs after failures only, or after
// nothing but tasks that are left out.
func (p *plan) skips(node int) bool {
	if node >= len(p.flow.Tasks) {
		return false
	}
	switch p.flow.Tasks[node].RunOn {
	case flows.RunAlways:
		return false
	case flows.RunOnFailure:
		return true
	}
	upstream := p.flow.Graph.Upstream(node)
	for _, up := range upstream {
		if !p.skipped[up] {
			return false
		}
	}
	return len(upstream) > 0
}
