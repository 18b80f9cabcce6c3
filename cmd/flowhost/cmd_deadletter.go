package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/cli"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/remote"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/render"
)

func deadletterCommand(a *cli.App) *cobra.Command {
	cmd := group(a, &cobra.Command{
		Use:   "deadletter",
		Short: "List, show, send and discard dead letters",
		Long: `Dead letters are messages that could make no run, or end no wait: the payload is not
what the flow takes, the flow does not exist, or flows start each other without an end.
The host keeps them for 30 days, with the reason.`,
		Example: `  flowhost deadletter list --flow orders
  flowhost deadletter show 7
  flowhost deadletter send 7 9
  flowhost deadletter discard --all --flow orders`,
	})
	cmd.AddCommand(deadletterListCommand(a), deadletterShowCommand(a), deadletterSendCommand(a), deadletterDiscardCommand(a))
	return cmd
}

func deadletterListCommand(a *cli.App) *cobra.Command {
	r := &remote.Host{App: a}
	var flow string
	var limit int
	var asJSON bool
	cmd := cli.Exits(&cobra.Command{
		Use:   "list",
		Short: "List dead letters, newest first",
		Example: `  flowhost deadletter list
  flowhost deadletter list --flow orders -n 0 --json | jq -r .reason | sort | uniq -c`,
		Args: cli.Between(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 0 {
				return cli.Usage(cmd, "--limit %d: an integer from 0 is expected; 0 is all dead letters", limit)
			}
			return r.Use(cmd, func(ctx context.Context, client *api.Client) error {
				columns := render.DeadLetterColumns()
				more, err := remote.EachDeadLetter(ctx, client, flow, limit, func(page []api.DeadLetter) error {
					return render.List(a.Out, page, asJSON, columns, render.DeadLetterRow)
				})
				if err == nil && more && a.Out.Interactive {
					a.Say("older dead letters may exist: -n %d shows more", 5*limit)
				}
				return err
			})
		},
	}, cli.ExitInvalid, cli.ExitUnreachable, cli.ExitInterrupted)
	flags := cmd.Flags()
	flags.StringVar(&flow, "flow", "", "only those of the flow of this `NAME`")
	flags.IntVarP(&limit, "limit", "n", 20, "maximum `NUMBER` of dead letters, 0 for all")
	flags.BoolVar(&asJSON, "json", false, "print one JSON object per line, for each dead letter")
	r.AddFlags(flags)
	cmd.RegisterFlagCompletionFunc("flow", r.Complete(remote.FlowNames))
	return cmd
}

func deadletterShowCommand(a *cli.App) *cobra.Command {
	r := &remote.Host{App: a}
	asJSON := false
	cmd := cli.Exits(&cobra.Command{
		Use:   "show NUMBER",
		Short: "Show a dead letter with its headers and its body",
		Example: `  flowhost deadletter show 7
  flowhost deadletter show 7 --json | jq -r .body`,
		Args:              cli.Between(1, 1, "NUMBER"),
		ValidArgsFunction: r.Complete(remote.CompleteDeadLetters),
		RunE: func(cmd *cobra.Command, args []string) error {
			sequences, err := remote.DeadLetterSequences(cmd, args)
			if err != nil {
				return err
			}
			return r.Use(cmd, func(ctx context.Context, client *api.Client) error {
				letter, err := client.DeadLetter(ctx, sequences[0])
				if err != nil {
					return err
				}
				if asJSON {
					return a.PrintJSON(letter)
				}
				a.Out.DescribeDeadLetter(&letter)
				return nil
			})
		},
	}, cli.ExitInvalid, cli.ExitUnreachable, cli.ExitInterrupted)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object with all of the body")
	r.AddFlags(cmd.Flags())
	return cmd
}
