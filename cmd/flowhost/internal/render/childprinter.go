package render

import (
	"context"
	"fmt"

	"github.com/flowhost/flowhost/run"
)

// maxChildren bounds the runs of sub-flows that are shown with a run: each costs a
// request.
const maxChildren = 100

// reader gives records of runs.
type reader interface {
	Get(ctx context.Context, id run.ID) (*run.Record, error)
}

// childPrinter shows the runs of sub-flows within a run.
type childPrinter struct {
	*Terminal
	runs reader
	left int // requests that may still be made

	failed bool // only tasks that failed are shown
}

// show writes the run of a sub-flow that a task started last, if any, with its tasks.
func (p *childPrinter) show(ctx context.Context, t *run.TaskRecord, indent string) {
	if t.Child == "" {
		return
	}
	head := fmt.Sprintf("%s  %s", p.Paint(dim, "run   "), t.Child)
	inner := indent + "  "
	if p.left--; p.left < 0 {
		p.line(indent, head)
		p.line(inner, fmt.Sprintf("… 'flowhost show %s' shows its tasks", t.Child))
		return
	}
	r, err := p.runs.Get(ctx, t.Child)
	if err != nil {
		p.line(indent, head)
		p.line(inner, Printable(err.Error()))
		return
	}
	if r.State == run.Pending {
		head += " " + p.runState(r)
	}
	p.line(indent, head)
	p.tasks(ctx, r, inner)
}

func (p *childPrinter) tasks(ctx context.Context, r *run.Record, indent string) {
	s := Selection{Failed: p.failed}
	for _, g := range taskGroups(r) {
		shown := s.of(&g)
		for _, t := range shown {
			p.one(ctx, t, indent)
		}
		if more := s.hides(r, &g, shown); more != "" {
			p.line(indent, p.Paint(dim, more))
		}
	}
}

// one writes a task in one line, below it its failure and the run of its sub-flow.
func (p *childPrinter) one(ctx context.Context, t *run.TaskRecord, indent string) {
	p.line(indent, p.taskLine(t))
	if t.Error != nil && t.State != run.Skipped {
		p.line(indent, p.Paint(Red, "  "+failureText(t.Error)))
	}
	p.show(ctx, t, indent+"  ")
}

func (p *childPrinter) line(indent, text string) { fmt.Fprintln(p, indent+text) }
