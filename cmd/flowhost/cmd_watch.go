package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/cli"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/remote"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/render"
)

func watchCommand(a *cli.App) *cobra.Command {
	e := &remote.Follower{Host: remote.Host{App: a}}
	cmd := cli.Exits(&cobra.Command{
		Use:   "watch RUN",
		Short: "Follow a run to its end",
		Long: `Shows the progress of a run until it ends, and then its output, as exec does. Fan-outs
of more than ten items are summed up, with their first failed items. The exit code is
that of the run. Ctrl-C ends the command, not the run.

` + remote.SelectorHelp,
		Example: `  flowhost watch @latest
  flowhost watch orders@latest --progress quiet && echo done`,
		Args:              cli.Between(1, 1, "RUN"),
		ValidArgsFunction: e.Complete(remote.CompleteRuns),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := render.NewProgress(e.App.Errout, e.Form)
			if err != nil {
				return cli.Usage(cmd, "%w", err)
			}
			return e.Use(cmd, func(ctx context.Context, client *api.Client) error {
				id, err := remote.PickRun(ctx, client, args[0])
				if err != nil {
					return err
				}
				e.Warn(ctx, client)
				return e.Await(ctx, client, id, p)
			})
		},
	}, cli.ExitFailed, cli.ExitInvalid, cli.ExitUnreachable, cli.ExitCanceled, cli.ExitInterrupted)
	e.AddFlags(cmd.Flags())
	return cmd
}
