package intake

import (
	"context"
	"slices"
	"strings"

	"github.com/flowhost/flowhost/bus/api"
)

// deployed answers with what is deployed.
func (d *requests) deployed(hard context.Context, m inbound) {
	var body api.DeployedRequest
	if !d.decode(m, &body) {
		return
	}
	d.read(hard, m, func(context.Context) answer {
		page := api.DeployedPage{Deployment: d.config.Deployed()}
		all := slices.DeleteFunc(slices.Clone(page.Flows), func(f api.DeployedFlow) bool { return f.Flow <= body.After })
		slices.SortFunc(all, func(a, b api.DeployedFlow) int { return strings.Compare(a.Flow, b.Flow) })
		return d.shorten(len(all), func(n int) any {
			page.Flows, page.Next = all[:n], ""
			if n > 0 && n < len(all) {
				page.Next = all[n-1].Flow
			}
			return page
		})
	})
}
