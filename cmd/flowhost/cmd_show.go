package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/cli"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/remote"
)

func showCommand(a *cli.App) *cobra.Command {
	r := &remote.Host{App: a}
	asJSON := false
	cmd := cli.Exits(&cobra.Command{
		Use:   "show RUN",
		Short: "Show a run with its tasks",
		Long: `Shows a run: its state, its trigger, and its tasks with their attempts, errors and
results. Long values are truncated; --json prints them in full. Tasks that run a flow
are shown with the tasks of that run.

` + remote.SelectorHelp,
		Example: `  flowhost show @latest
  flowhost show orders@latest --json | jq .output
  flowhost show 01M7YYDDJ8TYRD7Q2ARHP9C7BV`,
		Args:              cli.Between(1, 1, "RUN"),
		ValidArgsFunction: r.Complete(remote.CompleteRuns),
		RunE: func(cmd *cobra.Command, args []string) error {
			return r.Use(cmd, func(ctx context.Context, client *api.Client) error {
				id, err := remote.PickRun(ctx, client, args[0])
				if err != nil {
					return err
				}
				record, err := client.Get(ctx, id)
				if err != nil {
					return err
				}
				if asJSON {
					return a.PrintJSON(record)
				}
				a.Out.DescribeRun(ctx, client, record)
				if record.Truncated {
					a.Say("the record is too large for one message: items of fan-outs, or inputs and outputs of tasks, are omitted")
				}
				return nil
			})
		},
	}, cli.ExitInvalid, cli.ExitUnreachable, cli.ExitInterrupted)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the complete record of the run")
	r.AddFlags(cmd.Flags())
	return cmd
}
