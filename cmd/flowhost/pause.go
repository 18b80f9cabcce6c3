package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/run"
)

func (a *app) pauseCommand() *cobra.Command {
	r := &remote{app: a}
	var reason string
	cmd := exits(&cobra.Command{
		Use:   "pause FLOW[/TRIGGER] --reason TEXT",
		Short: "Stop a schedule until it is resumed",
		Long: `Stops a schedule, or all of a flow: nothing fires until it is resumed, also after a
restart of the host. Runs that are going go on, and the flow can still be asked for.
The reason is shown to whoever finds the schedule paused.

` + scheduleHelp,
		Example: `  flowhost pause orders/nightly --reason "the warehouse is moving"
  flowhost pause orders --reason INC-4711`,
		Args:              between(1, 1, "FLOW or FLOW/TRIGGER"),
		ValidArgsFunction: r.complete(someSchedules),
		RunE: func(cmd *cobra.Command, args []string) error {
			if strings.TrimSpace(reason) == "" {
				return usage(cmd, "--reason is missing: say why, for those who find it paused")
			}
			return r.changeSchedules(cmd, args[0], "is paused", func(ctx context.Context, client *api.Client, of run.ScheduleRef) ([]run.ScheduleRef, error) {
				return client.Pause(ctx, of, reason)
			})
		},
	}, exitFailed, exitInvalid, exitUnreachable, exitInterrupted)
	cmd.Flags().StringVar(&reason, "reason", "", "`TEXT` that is recorded with it; required")
	r.add(cmd.Flags())
	return cmd
}

func (a *app) resumeCommand() *cobra.Command {
	r := &remote{app: a}
	cmd := exits(&cobra.Command{
		Use:   "resume FLOW[/TRIGGER]",
		Short: "Let a paused schedule go on",
		Long: `Lets a paused schedule go on, or all of a flow. The times that it has missed fire
only where the flow states catch_up; 'flowhost backfill' makes up for them.

` + scheduleHelp,
		Example: `  flowhost resume orders/nightly
  flowhost resume orders`,
		Args:              between(1, 1, "FLOW or FLOW/TRIGGER"),
		ValidArgsFunction: r.complete(someSchedules),
		RunE: func(cmd *cobra.Command, args []string) error {
			return r.changeSchedules(cmd, args[0], "goes on", func(ctx context.Context, client *api.Client, of run.ScheduleRef) ([]run.ScheduleRef, error) {
				return client.Resume(ctx, of)
			})
		},
	}, exitFailed, exitInvalid, exitUnreachable, exitInterrupted)
	r.add(cmd.Flags())
	return cmd
}

// changeSchedules does something to the schedules that an argument names, and says
// to which.
func (r *remote) changeSchedules(cmd *cobra.Command, name, done string, change func(context.Context, *api.Client, run.ScheduleRef) ([]run.ScheduleRef, error)) error {
	return r.use(cmd, func(ctx context.Context, client *api.Client) error {
		of, err := pickSchedules(ctx, client, name)
		if err != nil {
			return err
		}
		changed, err := change(ctx, client, of)
		for _, ref := range changed {
			r.say("%s %s", ref, done)
		}
		return err
	})
}
