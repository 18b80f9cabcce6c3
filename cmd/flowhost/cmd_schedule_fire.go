package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/cli"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/remote"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/render"
)

func scheduleFireCommand(a *cli.App) *cobra.Command {
	e := &remote.Follower{Host: remote.Host{App: a}}
	var params []string
	var key string
	cmd := cli.Exits(&cobra.Command{
		Use:   "fire FLOW/TRIGGER",
		Short: "Start a run of a schedule now",
		Long: `Starts a run of a schedule now, with the params of its trigger, even while the
schedule is paused or disabled. Its next time does not change. Prints the run's id or,
with --wait, its result. While an earlier run of the schedule is open, the overlap
policy may reject another one.

With --key the command can be repeated safely: within a day, the same key for the same
flow starts one run, and the command prints its id again.`,
		Example: `  flowhost schedule fire orders/nightly
  flowhost schedule fire orders/nightly --param full=true --wait
  flowhost schedule fire orders/nightly --key INC-4711`,
		Args:              e.Wait.Between(1, 1, "FLOW/TRIGGER"),
		ValidArgsFunction: e.Complete(remote.CompleteSchedule),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := render.NewProgress(e.App.Errout, e.Form)
			if err != nil {
				return cli.Usage(cmd, "%w", err)
			}
			return e.Use(cmd, func(ctx context.Context, client *api.Client) error {
				s, err := remote.PickSchedule(ctx, client, args[0])
				if err != nil {
					return err
				}
				values, err := remote.AskParams(ctx, cmd, client, s.Flow, params)
				if err != nil {
					return err
				}
				receipt, err := client.Fire(ctx, s.ScheduleRef, values, key)
				if err != nil {
					return err
				}
				return e.Started(ctx, client, receipt, p)
			})
		},
	}, cli.ExitFailed, cli.ExitInvalid, cli.ExitUnreachable, cli.ExitTimeout, cli.ExitCanceled, cli.ExitInterrupted)
	flags := cmd.Flags()
	flags.StringArrayVar(&params, "param", nil, "param of the run, as `NAME=VALUE`; JSON unless its type is string; may be repeated")
	flags.StringVar(&key, "key", "", "`KEY` that makes the command safe to repeat")
	e.AddStartFlags(flags)
	return cmd
}
