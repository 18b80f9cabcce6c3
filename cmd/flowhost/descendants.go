package main

import (
	"context"
	"fmt"

	"github.com/flowhost/flowhost/run"
)

// maxDescendants bounds the runs of sub-flows that are shown with a run: each is
// asked for.
const maxDescendants = 100

// reader gives records of runs.
type reader interface {
	Get(ctx context.Context, id run.ID) (*run.Record, error)
}

// descendants shows the runs of sub-flows within a run.
type descendants struct {
	*app
	runs reader
	left int // that may still be asked for
}

// show writes the run that a task's last attempt was, if it was one, with its
// tasks.
func (d *descendants) show(ctx context.Context, t *run.TaskRecord, indent string) {
	if t.Child == "" {
		return
	}
	d.line(indent, fmt.Sprintf("%s  %s", d.out.paint(dim, "run   "), t.Child))
	indent += "  "
	if d.left--; d.left < 0 {
		d.line(indent, fmt.Sprintf("… 'flowhost show %s' shows its tasks", t.Child))
		return
	}
	r, err := d.runs.Get(ctx, t.Child)
	if err != nil {
		d.line(indent, printable(err.Error()))
		return
	}
	d.tasks(ctx, r, indent)
}

func (d *descendants) tasks(ctx context.Context, r *run.Record, indent string) {
	for i := range r.Tasks {
		t := &r.Tasks[i]
		d.line(indent, d.taskLine(t))
		if t.Error != nil {
			d.line(indent, d.out.paint(red, "  "+failureText(t.Error)))
		}
		d.show(ctx, t, indent+"  ")
	}
}

func (d *descendants) line(indent, text string) { fmt.Fprintln(d.out, indent+text) }
