package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/flowhost/flowhost/bus/api"
)

func (a *app) fireCommand() *cobra.Command {
	e := &ending{remote: remote{app: a}}
	var params []string
	var key string
	cmd := exits(&cobra.Command{
		Use:   "fire FLOW/TRIGGER",
		Short: "Start a run of a schedule now",
		Long: `Makes a run of a schedule now, with the params of its trigger, also while it is
paused or off. What is due next stays as it is. Prints the id of the run or, with
--wait, what came of it. While an earlier run of the schedule is going, its overlap
policy may refuse another one.

With --key the command may be repeated: the same key for the same flow makes one
run within a day, and its id is printed again.`,
		Example: `  flowhost fire orders/nightly
  flowhost fire orders/nightly --param full=true --wait
  flowhost fire orders/nightly --key INC-4711`,
		Args:              e.wait.between(1, 1, "FLOW/TRIGGER"),
		ValidArgsFunction: e.complete(oneSchedule),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := newProgress(e.errout, e.form)
			if err != nil {
				return usage(cmd, "%w", err)
			}
			return e.use(cmd, func(ctx context.Context, client *api.Client) error {
				s, err := pickSchedule(ctx, client, args[0])
				if err != nil {
					return err
				}
				values, err := askParams(ctx, cmd, client, s.Flow, params)
				if err != nil {
					return err
				}
				receipt, err := client.Fire(ctx, s.ScheduleRef, values, key)
				if err != nil {
					return err
				}
				return e.started(ctx, client, receipt, p)
			})
		},
	}, exitFailed, exitInvalid, exitUnreachable, exitTimeout, exitCanceled, exitInterrupted)
	flags := cmd.Flags()
	flags.StringArrayVar(&params, "param", nil, "param of the run, as `NAME=VALUE`; JSON unless its type is string; may be repeated")
	flags.StringVar(&key, "key", "", "`TEXT` that makes the command safe to repeat")
	e.addStarting(flags)
	return cmd
}
