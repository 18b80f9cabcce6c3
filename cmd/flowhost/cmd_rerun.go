package main

import (
	"github.com/spf13/cobra"

	"github.com/flowhost/flowhost/cmd/flowhost/internal/cli"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/remote"
)

func rerunCommand(a *cli.App) *cobra.Command {
	r := &repeating{follower: remote.Follower{Host: remote.Host{App: a}}}
	cmd := cli.Exits(&cobra.Command{
		Use:   "rerun RUN",
		Short: "Run again from the start or from a task",
		Long: `Starts a new run from any other one, with its trigger. With --from, that task and
everything downstream of it run again, and the results of all other tasks are reused.
NAME[KEY] is an item of a fan-out, NAME/NAME a task of the sub-flow that the first one
runs.

` + repeatHelp + remote.SelectorHelp,
		Example: `  flowhost rerun orders@latest
  flowhost rerun orders@latest --param region=us
  flowhost rerun nightly@latest --from transform --definition recorded --wait`,
		Args:              r.follower.Wait.Between(1, 1, "RUN"),
		ValidArgsFunction: r.follower.Complete(remote.CompleteRuns),
		RunE: func(cmd *cobra.Command, args []string) error {
			r.how.Whole, r.how.Downstream = r.task == "", r.task != ""
			return r.repeat(cmd, args[0])
		},
	}, cli.ExitFailed, cli.ExitInvalid, cli.ExitUnreachable, cli.ExitTimeout, cli.ExitCanceled, cli.ExitInterrupted)
	flags := cmd.Flags()
	flags.StringVar(&r.task, "from", "", "`NAME` of the task to start from, NAME[KEY] or NAME/NAME")
	r.addFlags(flags)
	return cmd
}
