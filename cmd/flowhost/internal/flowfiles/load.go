package flowfiles

import (
	"context"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/cobra"

	"github.com/flowhost/flowhost/cmd/flowhost/internal/cli"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/render"
	"github.com/flowhost/flowhost/flows"
)

// Load loads flow files and shows their problems; errors end the command.
func Load(ctx context.Context, a *cli.App, paths []string, options flows.Options) (*flows.Set, error) {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var set *flows.Set
	var diags hcl.Diagnostics
	Checked(ctx, options, fail, func(options flows.Options) { set, diags = flows.Load(ctx, paths, options) })
	if ctx.Err() != nil {
		return nil, context.Cause(ctx) // unread modules are not errors
	}
	a.ShowDiagnostics(set.Files(), diags)
	if diags.HasErrors() {
		return nil, cli.Quiet(cli.ExitInvalid)
	}
	return set, nil
}

// Pick is the flow of that name or, without a name, the only one.
func Pick(cmd *cobra.Command, set *flows.Set, name string) (*flows.Flow, error) {
	var names []string
	for _, f := range set.Flows {
		names = append(names, f.Name)
	}
	if len(names) == 0 {
		return nil, cli.Exitf(cli.ExitInvalid, "the flow files declare no flow: add a block flow \"NAME\" { … }")
	}
	if name != "" {
		if f := set.Flow(name); f != nil {
			return f, nil
		}
		return nil, cli.Usage(cmd, "unknown flow %q%s", name, cli.Suggest(name, names))
	}
	if len(set.Flows) == 1 {
		return set.Flows[0], nil
	}
	return nil, cli.Usage(cmd, "there are %s, select one with --flow: %s", render.Count(len(names), "flow"), strings.Join(names, ", "))
}
