package main

import "github.com/spf13/cobra"

func rerunCommand(a *app) *cobra.Command {
	r := &repeating{ending: ending{remote: remote{app: a}}}
	cmd := exits(&cobra.Command{
		Use:   "rerun RUN",
		Short: "Run again from the start, or from a task",
		Long: `Makes a new run of any other one, with its trigger. With --from, it begins at that
task: it runs again with everything that comes after it, and all else is taken over
as it was. NAME[KEY] is an item of a fan-out, NAME/NAME a task of the sub-flow that
the first one runs.

` + repeatHelp + selectorHelp,
		Example: `  flowhost rerun orders@latest
  flowhost rerun orders@latest --param region=us
  flowhost rerun nightly@latest --from transform --definition recorded --wait`,
		Args:              r.ending.wait.between(1, 1, "RUN"),
		ValidArgsFunction: r.ending.complete(latestRuns),
		RunE: func(cmd *cobra.Command, args []string) error {
			r.how.Whole, r.how.Downstream = r.task == "", r.task != ""
			return r.repeat(cmd, args[0])
		},
	}, exitFailed, exitInvalid, exitUnreachable, exitTimeout, exitCanceled, exitInterrupted)
	flags := cmd.Flags()
	flags.StringVar(&r.task, "from", "", "`NAME` of the task to begin with, NAME[KEY] or NAME/NAME")
	r.addFlags(flags)
	return cmd
}
