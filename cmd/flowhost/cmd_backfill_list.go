package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/cli"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/remote"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/render"
)

func backfillListCommand(a *cli.App) *cobra.Command {
	r := &remote.Host{App: a}
	asJSON := false
	cmd := cli.Exits(&cobra.Command{
		Use:     "list",
		Short:   "List backfills, newest first",
		Long:    `Lists the open backfills and the last hundred that have ended, newest first.`,
		Example: `  flowhost backfill list`,
		Args:    cli.Between(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return r.Use(cmd, func(ctx context.Context, client *api.Client) error {
				all, err := client.Backfills(ctx, "")
				if err != nil {
					return err
				}
				return render.List(a.Out, all, asJSON, backfillColumns, 2, backfillRow)
			})
		},
	}, cli.ExitInvalid, cli.ExitUnreachable, cli.ExitInterrupted)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per line, for each backfill")
	r.AddFlags(cmd.Flags())
	return cmd
}

var backfillColumns = []string{"BACKFILL", "SCHEDULE", "STATE", "DONE", "STARTED", "TOOK", "NOTE"}

func backfillRow(b api.Backfill) []string {
	took := ""
	if !b.EndedAt.IsZero() {
		took = render.Short(b.EndedAt.Sub(b.StartedAt))
	}
	notes := endsOf(&b)
	if b.Reason != "" {
		notes = append(notes, render.Printable(b.Reason))
	}
	done := fmt.Sprintf("%d of %d", b.Done, b.Total)
	return []string{string(b.ID), b.String(), remote.BackfillState(&b), done, render.LocalTime(b.StartedAt), took, strings.Join(notes, ", ")}
}
