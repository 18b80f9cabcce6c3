package render

import (
	"slices"
	"strings"

	"github.com/flowhost/flowhost/run"
)

// fanOuts are the fan-outs of a run and of the runs within it, of which the large ones
// are summed up in a progress: their items have lines only where they fail. The zero
// value is empty.
type fanOuts struct {
	all    map[callKey]*fanOut
	silent map[run.ID]bool // runs that belong to an item of a large one
	active []*fanOut       // large ones that are not over
	line   *StatusLine     // with their counters; nil off a terminal
}

// fanOut is a task with its items, as far as they are known.
type fanOut struct {
	label  string // with the tasks above its run
	counts run.ItemCounts
	states map[string]run.State // of the items of a large one; nil when the counts come from records
	failed int                  // items with a line of their own
	tenths int                  // of its items that are done, in the last line about it
	over   bool
}

// count takes the counts of a fan-out over from a record, before its events are shown.
func (p *Progress) count(task callKey, counts run.ItemCounts) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := p.fanOuts.of(task, p.within.path(task.run))
	f.counts, f.states = counts, nil
}

// showCounts shows the counters of a fan-out whose counts come from records, after the
// events.
func (p *Progress) showCounts(task callKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if f := p.fanOuts.all[task]; f.large() && !f.over && p.form == "plain" {
		p.changed(f)
	}
}

// of finds a fan-out, or notes it.
func (fs *fanOuts) of(task callKey, path string) *fanOut {
	if fs.all == nil {
		fs.all, fs.silent = map[callKey]*fanOut{}, map[run.ID]bool{}
	}
	f := fs.all[task]
	if f == nil {
		f = &fanOut{label: path + task.task.Task}
		fs.all[task] = f
	}
	return f
}

func (f *fanOut) large() bool { return f.counts.Total > maxItems }

// sumUp notes an event of a task, and reports whether the progress shows no line of
// its own for it.
func (p *Progress) sumUp(path string, e run.Event) bool {
	if p.fanOuts.silent[e.Run] {
		if child, ok := e.Data.(*run.ChildStarted); ok {
			p.fanOuts.silent[child.Child] = true
		}
		return true
	}
	ref := taskOf(e.Data)
	task := callKey{e.Run, run.TaskRef{Task: ref.Task}}
	if d, ok := e.Data.(*run.TaskExpanded); ok {
		f := p.fanOuts.of(task, path)
		if f.counts.Total == 0 {
			n := run.CountItems(d.Items)
			f.counts, f.states = run.ItemCounts{Total: n, Waiting: n}, map[string]run.State{}
		}
		p.line(f.label, string(run.Running), Count(f.counts.Total, "item"))
		return true
	}
	f := p.fanOuts.all[task]
	if f == nil || !f.large() {
		return false
	}
	if ref.Key == "" {
		p.fanOutEnded(f, e.Data)
		return true
	}
	return p.itemEvent(f, ref, e.Data)
}

// itemEvent notes an event of an item of a large fan-out, and reports whether it has no
// line: only failures have one, as long as there are not many.
func (p *Progress) itemEvent(f *fanOut, ref run.TaskRef, data run.EventData) bool {
	state := run.State("")
	switch d := data.(type) {
	case *run.ChildStarted:
		p.fanOuts.silent[d.Child] = true
		state = run.Running
	case *run.AttemptStarted:
		state = run.Running
	case *run.AttemptFinished:
		if state = d.Outcome.State(); !d.RetryAt.IsZero() {
			state = run.Ready
		}
	case *run.TaskEnded:
		state = d.State
	}
	if state == "" {
		return true
	}
	silent := true
	if state == run.Failed {
		f.failed++
		silent = f.failed > maxItems
	}
	if f.states != nil {
		if before, known := f.states[ref.Key]; known {
			*f.counts.Of(before)--
		} else {
			f.counts.Waiting--
		}
		f.states[ref.Key] = state
		*f.counts.Of(state)++
		p.changed(f)
	}
	return silent
}

// changed shows the counters of a fan-out: in place on a terminal, otherwise in a line
// for each tenth of its items.
func (p *Progress) changed(f *fanOut) {
	if !slices.Contains(p.fanOuts.active, f) {
		p.fanOuts.active = append(p.fanOuts.active, f)
	}
	if p.fanOuts.line != nil {
		p.drawCounters()
		return
	}
	if tenths := 10 * f.counts.Done() / f.counts.Total; tenths > f.tenths && tenths < 10 {
		f.tenths = tenths
		p.line(f.label, string(run.Running), countsText(&f.counts, false))
	}
}

// fanOutEnded shows the end of a large fan-out, with its items summed up.
func (p *Progress) fanOutEnded(f *fanOut, data run.EventData) {
	end, ok := data.(*run.TaskEnded)
	if !ok {
		return
	}
	f.over = true
	p.fanOuts.active = slices.DeleteFunc(p.fanOuts.active, func(other *fanOut) bool { return other == f })
	if p.fanOuts.line != nil {
		p.drawCounters()
	}
	text := countsText(&f.counts, true)
	if end.Failure != nil {
		text += "; " + why(end.Failure)
	}
	p.line(f.label, string(end.State), text)
}

// drawCounters writes the counters of the active fan-outs into the status line.
func (p *Progress) drawCounters() {
	var texts []string
	for _, f := range p.fanOuts.active {
		texts = append(texts, f.label+": "+countsText(&f.counts, false))
	}
	p.fanOuts.line.Show(strings.Join(texts, " | "))
}

// taskOf is the task that an event is about, the zero TaskRef for none.
func taskOf(data run.EventData) run.TaskRef {
	switch d := data.(type) {
	case *run.AttemptStarted:
		return d.TaskRef
	case *run.AttemptFinished:
		return d.TaskRef
	case *run.ChildStarted:
		return d.TaskRef
	case *run.TaskEnded:
		return d.TaskRef
	case *run.TaskExpanded:
		return d.TaskRef
	}
	return run.TaskRef{}
}
