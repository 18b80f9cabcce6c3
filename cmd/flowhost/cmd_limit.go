package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/cli"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/remote"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/render"
	"github.com/flowhost/flowhost/run"
)

func limitCommand(a *cli.App) *cobra.Command {
	cmd := group(a, &cobra.Command{
		Use:     "limit",
		Short:   "Show the limits that flows share",
		Example: "  flowhost limit list",
	})
	cmd.AddCommand(limitListCommand(a))
	return cmd
}

func limitListCommand(a *cli.App) *cobra.Command {
	r := &remote.Host{App: a}
	asJSON := false
	cmd := cli.Exits(&cobra.Command{
		Use:   "list",
		Short: "List limits and their usage",
		Long: `Lists the limits that the flows of a host share: the running attempts and their
maximum, the rate limit, and the number of waiting tasks.`,
		Example: `  flowhost limit list
  flowhost limit list --json | jq 'select(.waiting > 0)'`,
		Args: cli.Between(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return r.Use(cmd, func(ctx context.Context, client *api.Client) error {
				all, err := client.Limits(ctx)
				if err != nil {
					return err
				}
				return render.List(a.Out, all, asJSON, limitColumns(), limitRow)
			})
		},
	}, cli.ExitInvalid, cli.ExitUnreachable, cli.ExitInterrupted)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per line, for each limit")
	r.AddFlags(cmd.Flags())
	return cmd
}

func limitColumns() *render.Columns {
	return &render.Columns{Names: []string{"LIMIT", "IN USE", "RATE", "WAITING", "NOTE"}, States: -1}
}

func limitRow(l run.LimitStatus) []string {
	inUse, note := fmt.Sprint(l.InUse), ""
	if l.Concurrency > 0 {
		inUse += fmt.Sprintf(" of %d", l.Concurrency)
	}
	if !l.Next.IsZero() {
		note = "next start " + render.LocalTime(l.Next)
	}
	return []string{l.Limit, inUse, l.Rate, fmt.Sprint(l.Waiting), note}
}
