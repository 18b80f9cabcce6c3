package bus

import (
	"context"
	"slices"
	"strings"

	"github.com/flowhost/flowhost/run"
)

type limitsBody struct {
	After string `json:"after"` // cursor: only limits whose names come later
}

func (*limitsBody) check() error { return nil }

// limitsPage is the answer to limits.
type limitsPage struct {
	Limits []run.LimitStatus `json:"limits"`
	Next   string            `json:"next,omitempty"` // cursor of what did not fit
}

// limits answers with limits as they stand, in the order of their names.
func (d *desk) limits(hard context.Context, m inbound) {
	var body limitsBody
	if !d.understood(m, &body) {
		return
	}
	d.read(hard, m, func(ctx context.Context) answer {
		all, err := d.config.Limits(ctx)
		if err != nil {
			return d.faultOf("", err)
		}
		from, found := slices.BinarySearchFunc(all, body.After, func(l run.LimitStatus, name string) int { return strings.Compare(l.Limit, name) })
		if found {
			from++
		}
		all = append([]run.LimitStatus{}, all[from:]...)
		return d.shorten(len(all), func(n int) any {
			page := limitsPage{Limits: all[:n]}
			if n > 0 && n < len(all) {
				page.Next = all[n-1].Limit
			}
			return page
		})
	})
}
