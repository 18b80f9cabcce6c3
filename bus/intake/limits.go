package intake

import (
	"context"
	"slices"
	"strings"

	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/run"
)

// limits answers with the state of limits, in the order of their names.
func (d *requests) limits(hard context.Context, m inbound) {
	var body api.LimitsRequest
	if !d.decode(m, &body) {
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
			page := api.LimitsPage{Limits: all[:n]}
			if n > 0 && n < len(all) {
				page.Next = all[n-1].Limit
			}
			return page
		})
	})
}
