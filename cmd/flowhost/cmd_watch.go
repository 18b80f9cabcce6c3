package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/render"
)

func watchCommand(a *app) *cobra.Command {
	e := &ending{remote: remote{app: a}}
	cmd := exits(&cobra.Command{
		Use:   "watch RUN",
		Short: "Follow a run to its end",
		Long: `Shows what happens to a run until it ends, and then its output, as exec does. The
exit code is that of the run. Ctrl-C ends the watching, not the run.

` + selectorHelp,
		Example: `  flowhost watch @latest
  flowhost watch orders@latest --progress quiet && echo done`,
		Args:              between(1, 1, "RUN"),
		ValidArgsFunction: e.complete(latestRuns),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := render.NewProgress(e.app.errout, e.form)
			if err != nil {
				return usage(cmd, "%w", err)
			}
			return e.use(cmd, func(ctx context.Context, client *bus.Client) error {
				id, err := pickRun(ctx, client, args[0])
				if err != nil {
					return err
				}
				return e.await(ctx, client, id, p)
			})
		},
	}, exitFailed, exitInvalid, exitUnreachable, exitCanceled, exitInterrupted)
	e.add(cmd.Flags())
	return cmd
}
