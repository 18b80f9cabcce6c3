package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/cli"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/remote"
)

func backfillCancelCommand(a *cli.App) *cobra.Command {
	r := &remote.Host{App: a}
	var reason string
	cmd := cli.Exits(&cobra.Command{
		Use:   "cancel BACKFILL",
		Short: "Cancel a backfill",
		Long: `Ends a backfill early: the host cancels its running runs and starts no others. Finished
runs are not affected.

` + remote.BackfillHelp,
		Example:           `  flowhost backfill cancel @latest --reason "wrong range"`,
		Args:              cli.Between(1, 1, "BACKFILL"),
		ValidArgsFunction: r.Complete(remote.CompleteBackfills),
		RunE: func(cmd *cobra.Command, args []string) error {
			return r.Use(cmd, func(ctx context.Context, client *api.Client) error {
				b, err := remote.PickBackfill(ctx, client, args[0])
				if err != nil {
					return err
				}
				if !b.EndedAt.IsZero() {
					return cli.Exitf(cli.ExitFailed, "backfill %s has already ended", b.ID)
				}
				if err := client.CancelBackfill(ctx, b.ID, reason); err != nil {
					return err
				}
				a.Say("backfill %s is canceled", b.ID)
				return nil
			})
		},
	}, cli.ExitFailed, cli.ExitInvalid, cli.ExitUnreachable, cli.ExitInterrupted)
	cmd.Flags().StringVar(&reason, "reason", "canceled from the command line", "`TEXT` recorded with it")
	r.AddFlags(cmd.Flags())
	return cmd
}
