package flowfiles

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/flowhost/flowhost/cmd/flowhost/internal/cli"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/render"
	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/host"
	"github.com/flowhost/flowhost/run"
)

// Load loads flow files and shows their problems; errors end the command.
func Load(ctx context.Context, a *cli.App, paths []string, options flows.Options) (*flows.Set, error) {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	if options.Catalog != nil {
		options.Catalog = storingCatalog{options.Catalog, fail}
	}
	set, diags := flows.Load(ctx, paths, options)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx) // unread modules are not errors
	}
	a.ShowDiagnostics(set.Files(), diags)
	if diags.HasErrors() {
		return nil, cli.Quiet(cli.ExitInvalid)
	}
	return set, nil
}

// storingCatalog ends the loading when modules cannot be stored: the data directory is to
// blame, and not each plugin.
type storingCatalog struct {
	flows.Catalog
	fail context.CancelCauseFunc
}

// Signature implements flows.Catalog.
func (c storingCatalog) Signature(ctx context.Context, path string) (run.Signature, error) {
	signature, err := c.Catalog.Signature(ctx, path)
	if fault := (*host.StorageError)(nil); errors.As(err, &fault) {
		c.fail(cli.WithCode(cli.ExitInvalid, fault.Err))
	}
	return signature, err
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
