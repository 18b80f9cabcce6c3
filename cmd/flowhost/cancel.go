package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/flowhost/flowhost/bus/api"
)

func (a *app) cancelCommand() *cobra.Command {
	r := &remote{app: a}
	var task, reason string
	cmd := exits(&cobra.Command{
		Use:   "cancel RUN",
		Short: "Cancel a run, or one task of it",
		Long: `Cancels a run: attempts under way are stopped and no other starts, but for the
tasks of finally. With --task only that task is canceled; NAME[KEY] is an item of a
fan-out, NAME/NAME a task of the sub-flow that the first one runs. The command returns
when the cancellation is recorded; the run ends soon after.

` + selectorHelp,
		Example: `  flowhost cancel orders@latest --reason "wrong input"
  flowhost cancel 01M7YYDDJ8TYRD7Q2ARHP9C7BV --task price`,
		Args:              between(1, 1, "RUN"),
		ValidArgsFunction: r.complete(latestRuns),
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := taskPath(task)
			if err != nil {
				return usage(cmd, "%w", err)
			}
			return r.use(cmd, func(ctx context.Context, client *api.Client) error {
				id, err := pickRun(ctx, client, args[0])
				if err != nil {
					return err
				}
				within, err := findTask(ctx, client, id, path, true)
				if err != nil {
					return err
				}
				if err := client.Cancel(ctx, within, lastOf(path), reason); err != nil {
					return err
				}
				what := "run " + string(id)
				if task != "" {
					what = called(task) + " of " + what
				}
				a.say("%s is canceled", what)
				return nil
			})
		},
	}, exitFailed, exitInvalid, exitUnreachable, exitInterrupted)
	flags := cmd.Flags()
	flags.StringVar(&task, "task", "", "`NAME` of the only task to cancel, NAME[KEY] or NAME/NAME")
	flags.StringVar(&reason, "reason", "canceled from the command line", "`TEXT` that is recorded with it")
	r.add(flags)
	return cmd
}
