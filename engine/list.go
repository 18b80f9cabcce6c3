package engine

import (
	"cmp"
	"context"
	"slices"

	"github.com/flowhost/flowhost/run"
)

// List gives a page of runs, open and finished, newest first.
func (e *Engine) List(ctx context.Context, q run.Query) (run.Page, error) {
	var present []run.Summary
	answers := make(chan struct{}, 1)
	err := e.command(ctx, func() {
		present = e.exec.present(q)
		e.exec.commits.afterCommit(func() { answers <- struct{}{} })
	})
	if err == nil {
		_, err = await(ctx, e, answers)
	}
	if err != nil {
		return run.Page{}, err
	}
	var page run.Page
	if e.exec.config.History != nil {
		if page, err = e.exec.config.History.List(ctx, q); err != nil {
			return run.Page{}, err
		}
	}
	return merge(page, present, q.Size()), nil
}

// present gives the matching runs that are open or ended recently, newest first, at
// most a page and one more.
func (e *executor) present(q run.Query) []run.Summary {
	var found []run.Summary
	for _, o := range e.open {
		if s := o.summary(); q.Matches(&s) {
			found = append(found, s)
		}
	}
	for _, end := range e.finished.completions {
		if s := end.record.Summary(); q.Matches(&s) {
			found = append(found, s)
		}
	}
	slices.SortFunc(found, newestFirst)
	return found[:min(len(found), q.Size()+1)]
}

func (o *openRun) summary() run.Summary {
	t := &o.run.Trigger
	s := run.Summary{
		Run: o.run.ID, Flow: o.run.Flow, State: o.run.State, CreatedAt: o.run.CreatedAt,
		Trigger: run.TriggerSummary{Kind: t.Kind, Name: t.Name, Time: t.Time},
	}
	if o.run.Parent != nil {
		s.Parent = o.run.Parent.Run
	}
	return s
}

func newestFirst(a, b run.Summary) int { return cmp.Compare(b.Run, a.Run) }

// merge puts past and present runs on one page. A run in both has just become history.
func merge(past run.Page, present []run.Summary, size int) run.Page {
	all := append(slices.Clip(past.Runs), present...)
	slices.SortStableFunc(all, newestFirst)
	all = slices.CompactFunc(all, func(a, b run.Summary) bool { return a.Run == b.Run })
	page := run.Page{Runs: all[:min(len(all), size)]}
	if len(all) > size || past.Next != "" && len(page.Runs) > 0 {
		page.Next = page.Runs[len(page.Runs)-1].Run
	}
	return page
}
