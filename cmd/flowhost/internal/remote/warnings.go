package remote

import (
	"context"

	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/cli"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/render"
	"github.com/flowhost/flowhost/run"
)

// Warn warns when the host serves the flows as they were before its files changed, because
// it could not load them, and when it starts no attempt. A host that does not answer fails
// at the request itself.
func (r *Host) Warn(ctx context.Context, client *api.Client) {
	status, err := client.Status(ctx)
	if err != nil {
		return
	}
	warn := func(format string, args ...any) {
		r.App.Say(r.App.Errout.Paint(render.Yellow, "Warning:")+" "+format, args...)
	}
	if fault := status.Fault; fault != nil && len(fault.Problems) > 0 {
		more := ""
		if n := len(fault.Problems) - 1; n > 0 {
			more = " (and " + render.Count(n, "more problem") + ")"
		}
		warn("the host failed to load its files at %s and serves the previous flows: %s%s", render.LocalTime(fault.At), render.Printable(fault.Problems[0]), more)
	}
	switch p := status.Pause; {
	case p != nil:
		warn("the host is paused since %s: %s; no attempt starts until 'flowhost resume --host'", render.LocalTime(p.At), render.Printable(p.Reason))
	case status.Workers == 0:
		warn("the host has 0 workers: no attempt starts")
	}
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
