package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/cli"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/render"
)

func watchCommand(a *cli.App) *cobra.Command {
	e := &ending{remote: remote{app: a}}
	cmd := cli.Exits(&cobra.Command{
		Use:   "watch RUN",
		Short: "Follow a run to its end",
		Long: `Shows what happens to a run until it ends, and then its output, as exec does. The
exit code is that of the run. Ctrl-C ends the watching, not the run.

` + selectorHelp,
		Example: `  flowhost watch @latest
  flowhost watch orders@latest --progress quiet && echo done`,
		Args:              cli.Between(1, 1, "RUN"),
		ValidArgsFunction: e.complete(latestRuns),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := render.NewProgress(e.app.Errout, e.form)
			if err != nil {
				return cli.Usage(cmd, "%w", err)
			}
			return e.use(cmd, func(ctx context.Context, client *bus.Client) error {
				id, err := pickRun(ctx, client, args[0])
				if err != nil {
					return err
				}
				return e.await(ctx, client, id, p)
			})
		},
	}, cli.ExitFailed, cli.ExitInvalid, cli.ExitUnreachable, cli.ExitCanceled, cli.ExitInterrupted)
	e.add(cmd.Flags())
	return cmd
}
