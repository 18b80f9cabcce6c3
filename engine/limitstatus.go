package engine

import (
	"cmp"
	"context"
	"slices"

	"github.com/flowhost/flowhost/run"
)

// Limits tells how limits stand, by name: those that are deployed, and those that
// open runs began with.
func (e *Engine) Limits(ctx context.Context) ([]run.LimitStatus, error) {
	var all []run.LimitStatus
	err := e.command(ctx, func() {
		for _, q := range e.quotas {
			all = append(all, q.status())
		}
	})
	slices.SortFunc(all, func(a, b run.LimitStatus) int { return cmp.Compare(a.Limit, b.Limit) })
	return all, err
}

func (q *quota) status() run.LimitStatus {
	s := run.LimitStatus{Limit: q.limit.Name, Concurrency: q.limit.Concurrency, InUse: q.held, Waiting: q.waiting}
	if q.limit.Rate.Count > 0 {
		s.Rate = q.limit.Rate.String()
	}
	if q.resting {
		s.Next = q.rest.due.UTC()
	}
	return s
}
