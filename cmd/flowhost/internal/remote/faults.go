package remote

import (
	"context"

	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/cli"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/render"
	"github.com/flowhost/flowhost/run"
)

// WarnOfFault warns when the host could not load its changed files and serves the flows
// as they were before. A host that does not answer fails at the request itself.
func (r *Host) WarnOfFault(ctx context.Context, client *api.Client) {
	fault, err := client.LoadFault(ctx)
	if err != nil || fault == nil || len(fault.Problems) == 0 {
		return
	}
	more := ""
	if n := len(fault.Problems) - 1; n > 0 {
		more = " (and " + render.Count(n, "more problem") + ")"
	}
	r.App.Say("%s the host failed to load its files at %s and serves the previous flows: %s%s",
		r.App.Errout.Paint(render.Yellow, "Warning:"), render.LocalTime(fault.At), render.Printable(fault.Problems[0]), more)
}

// CheckFlow is an error if no flow of a name is deployed and no run of it is known.
func CheckFlow(ctx context.Context, client *api.Client, flow string) error {
	deployed, err := client.Flows(ctx, flow)
	if err != nil || len(deployed) > 0 {
		return err
	}
	page, err := client.List(ctx, run.Query{Flow: flow, Limit: 1})
	if err != nil || len(page.Runs) > 0 {
		return err
	}
	return cli.Exitf(cli.ExitInvalid, "no flow %q is deployed, and no run of it is known%s", flow, cli.Suggest(flow, FlowNames(ctx, client)))
}
