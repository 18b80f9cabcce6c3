package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/cli"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/remote"
	"github.com/flowhost/flowhost/run"
)

func resumeCommand(a *cli.App) *cobra.Command {
	r := &remote.Host{App: a}
	cmd := cli.Exits(&cobra.Command{
		Use:   "resume FLOW[/TRIGGER]",
		Short: "Resume a paused schedule",
		Long: `Resumes a paused schedule, or all schedules of a flow. Missed times fire only if the
flow sets catch_up; 'flowhost backfill' runs them later.

` + remote.ScheduleHelp,
		Example: `  flowhost resume orders/nightly
  flowhost resume orders`,
		Args:              cli.Between(1, 1, "FLOW or FLOW/TRIGGER"),
		ValidArgsFunction: r.Complete(remote.CompleteSchedules),
		RunE: func(cmd *cobra.Command, args []string) error {
			return changeSchedules(r, cmd, args[0], "is resumed", func(ctx context.Context, client *api.Client, of run.ScheduleRef) ([]run.ScheduleRef, error) {
				return client.Resume(ctx, of)
			})
		},
	}, cli.ExitFailed, cli.ExitInvalid, cli.ExitUnreachable, cli.ExitInterrupted)
	r.AddFlags(cmd.Flags())
	return cmd
}
