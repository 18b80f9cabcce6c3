package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/cli"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/remote"
	"github.com/flowhost/flowhost/run"
)

func schedulePauseCommand(a *cli.App) *cobra.Command {
	r := &remote.Host{App: a}
	var reason string
	cmd := cli.Exits(&cobra.Command{
		Use:   "pause FLOW[/TRIGGER] --reason TEXT",
		Short: "Pause a schedule until it is resumed",
		Long: `Pauses a schedule, or all schedules of a flow: nothing fires until it is resumed, even
after a restart of the host. Open runs continue, and other triggers still start runs.
The reason is shown to whoever finds the schedule paused.

` + remote.ScheduleHelp,
		Example: `  flowhost schedule pause orders/nightly --reason "the warehouse is moving"
  flowhost schedule pause orders --reason INC-4711`,
		Args:              cli.Between(1, 1, "FLOW or FLOW/TRIGGER"),
		ValidArgsFunction: r.Complete(remote.CompleteSchedules),
		RunE: func(cmd *cobra.Command, args []string) error {
			if strings.TrimSpace(reason) == "" {
				return cli.Usage(cmd, "--reason is required: it is shown to whoever finds the schedule paused")
			}
			return changeSchedules(r, cmd, args[0], "is paused", func(ctx context.Context, client *api.Client, of run.ScheduleRef) ([]run.ScheduleRef, error) {
				return client.Pause(ctx, of, reason)
			})
		},
	}, cli.ExitFailed, cli.ExitInvalid, cli.ExitUnreachable, cli.ExitInterrupted)
	cmd.Flags().StringVar(&reason, "reason", "", "`TEXT` recorded with it; required")
	r.AddFlags(cmd.Flags())
	return cmd
}

func scheduleResumeCommand(a *cli.App) *cobra.Command {
	r := &remote.Host{App: a}
	cmd := cli.Exits(&cobra.Command{
		Use:   "resume FLOW[/TRIGGER]",
		Short: "Resume a paused schedule",
		Long: `Resumes a paused schedule, or all schedules of a flow. Missed times fire only if the
flow sets catch_up; 'flowhost backfill' runs them later.

` + remote.ScheduleHelp,
		Example: `  flowhost schedule resume orders/nightly
  flowhost schedule resume orders`,
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

// changeSchedules changes the schedules that an argument names, and lists
// them.
func changeSchedules(r *remote.Host, cmd *cobra.Command, name, done string, change func(context.Context, *api.Client, run.ScheduleRef) ([]run.ScheduleRef, error)) error {
	return r.Use(cmd, func(ctx context.Context, client *api.Client) error {
		of, err := remote.PickSchedules(ctx, client, name)
		if err != nil {
			return err
		}
		changed, err := change(ctx, client, of)
		for _, ref := range changed {
			r.App.Say("%s %s", ref, done)
		}
		return err
	})
}
