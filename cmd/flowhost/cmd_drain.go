package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/cli"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/remote"
)

func drainCommand(a *cli.App) *cobra.Command {
	r := &remote.Host{App: a}
	wait := false
	cmd := cli.Exits(&cobra.Command{
		Use:   "drain",
		Short: "Shut a host down gracefully",
		Long: `Shuts a running host down gracefully, as its first Ctrl-C does: no attempt starts,
running attempts finish, then the host exits. Open runs resume at the next start. The
command returns at once, with --wait when the host has gone. It needs the operator's
credentials.

'flowhost pause --host' stops the attempts of a host that continues to run.`,
		Example: `  flowhost drain
  flowhost drain --wait && systemctl restart flowhost`,
		Args: cli.Between(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return r.Use(cmd, func(ctx context.Context, client *api.Client) error {
				draining, err := client.Drain(ctx)
				switch {
				case remote.IsStopping(err):
					a.Say("the host is shutting down already")
				case err != nil:
					return err
				default:
					a.Say("the host shuts down: running attempts finish first")
				}
				if !wait {
					return nil
				}
				return r.AwaitEnd(ctx, client, draining)
			})
		},
	}, cli.ExitInvalid, cli.ExitUnreachable, cli.ExitInterrupted)
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until the host has gone")
	r.AddFlags(cmd.Flags())
	return cmd
}
