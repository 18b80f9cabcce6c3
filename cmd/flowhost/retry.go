package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/flowhost/flowhost/bus"
)

func (a *app) retryCommand() *cobra.Command {
	e := &ending{remote: remote{app: a}}
	var whole bool
	var wait waitFlag
	cmd := exits(&cobra.Command{
		Use:   "retry RUN",
		Short: "Run again what did not succeed",
		Long: `Makes a new run of one that has failed or was canceled. What its tasks gave that
succeeded is taken over, the others run; with --whole all of them do. Prints the
id of the new run or, with --wait, what came of it.

` + selectorHelp,
		Example: `  flowhost retry @latest
  flowhost retry orders@latest --whole --wait`,
		Args:              wait.between(1, 1, "RUN"),
		ValidArgsFunction: e.complete(latestRuns),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := newProgress(e.errout, e.form)
			if err != nil {
				return usage(cmd, "%w", err)
			}
			return e.use(cmd, func(ctx context.Context, client *bus.Client) error {
				id, err := pickRun(ctx, client, args[0])
				if err != nil {
					return err
				}
				receipt, err := client.Retry(ctx, id, whole)
				if err != nil {
					return err
				}
				return e.started(ctx, client, receipt, wait, p)
			})
		},
	}, exitFailed, exitInvalid, exitUnreachable, exitTimeout, exitCanceled, exitInterrupted)
	flags := cmd.Flags()
	flags.BoolVar(&whole, "whole", false, "run all tasks again")
	wait.add(flags)
	e.add(flags)
	return cmd
}
