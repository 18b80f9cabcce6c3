package intake

import (
	"context"
	"slices"
	"strings"

	"github.com/flowhost/flowhost/bus/api"
)

// flows answers with the flows that can be asked for.
func (d *requests) flows(hard context.Context, m inbound) {
	var body api.FlowsRequest
	if !d.decode(m, &body) {
		return
	}
	d.read(hard, m, func(context.Context) answer {
		all := []api.FlowInfo{}
		for _, f := range d.config.Flows() {
			if (body.Flow == "" || f.Flow == body.Flow) && f.Flow > body.After {
				all = append(all, f)
			}
		}
		slices.SortFunc(all, func(a, b api.FlowInfo) int { return strings.Compare(a.Flow, b.Flow) })
		return d.shorten(len(all), func(n int) any {
			page := api.FlowsPage{Flows: all[:n]}
			if n > 0 && n < len(all) {
				page.Next = all[n-1].Flow
			}
			return page
		})
	})
}
