package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/cli"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/remote"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/render"
)

func cancelCommand(a *cli.App) *cobra.Command {
	r := &remote.Host{App: a}
	var task, reason string
	cmd := cli.Exits(&cobra.Command{
		Use:   "cancel RUN",
		Short: "Cancel a run, or one task of it",
		Long: `Cancels a run: the host stops its running attempts and starts no others, except the
tasks of finally. With --task it cancels only that task; NAME[KEY] is an item of a
fan-out, NAME/NAME a task of the sub-flow that the first one runs. The command returns
once the cancellation is durable; the run ends soon after.

` + remote.SelectorHelp,
		Example: `  flowhost cancel orders@latest --reason "wrong input"
  flowhost cancel 01M7YYDDJ8TYRD7Q2ARHP9C7BV --task price`,
		Args:              cli.Between(1, 1, "RUN"),
		ValidArgsFunction: r.Complete(remote.CompleteRuns),
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := remote.TaskPath(task)
			if err != nil {
				return cli.Usage(cmd, "%w", err)
			}
			return r.Use(cmd, func(ctx context.Context, client *api.Client) error {
				id, err := remote.PickRun(ctx, client, args[0])
				if err != nil {
					return err
				}
				within, err := remote.FindTask(ctx, client, id, path, true)
				if err != nil {
					return err
				}
				if err := client.Cancel(ctx, within, remote.LastOf(path), reason); err != nil {
					return err
				}
				what := "run " + string(id)
				if task != "" {
					what = render.TaskLabel(task) + " of " + what
				}
				a.Say("%s is canceled", what)
				return nil
			})
		},
	}, cli.ExitFailed, cli.ExitInvalid, cli.ExitUnreachable, cli.ExitInterrupted)
	flags := cmd.Flags()
	flags.StringVar(&task, "task", "", "cancel only the task of this `NAME`, NAME[KEY] or NAME/NAME")
	flags.StringVar(&reason, "reason", "canceled from the command line", "`TEXT` recorded with it")
	r.AddFlags(flags)
	return cmd
}
