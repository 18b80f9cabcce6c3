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
		Use:   "list",
		Short: "List backfills, newest first",
		Long: `Lists the open backfills and the last hundred that have ended, newest first. FIRST and
LAST are the earliest and the latest nominal time of each; 'flowhost runs --nominal'
lists the runs of nominal times.`,
		Example: `  flowhost backfill list`,
		Args:    cli.Between(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return r.Use(cmd, func(ctx context.Context, client *api.Client) error {
				all, err := client.Backfills(ctx, "")
				if err != nil {
					return err
				}
				return render.List(a.Out, all, asJSON, backfillColumns(), backfillRow)
			})
		},
	}, cli.ExitInvalid, cli.ExitUnreachable, cli.ExitInterrupted)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per line, for each backfill")
	r.AddFlags(cmd.Flags())
	return cmd
}

func backfillColumns() *render.Columns {
	return &render.Columns{
		Names:  []string{"BACKFILL", "SCHEDULE", "STATE", "DONE", "FIRST", "LAST", "STARTED", "TOOK", "NOTE"},
		States: 2, Narrow: []int{7, 6, 5, 4},
	}
}

func backfillRow(b api.Backfill) []string {
	took := render.Elapsed(b.StartedAt) + " so far"
	if !b.EndedAt.IsZero() {
		took = render.Short(b.EndedAt.Sub(b.StartedAt))
	}
	first, last := "", ""
	if !b.First.IsZero() {
		first, last = render.Nominal(b.First), render.Nominal(b.Last)
	}
	notes := endsOf(&b)
	if b.Reason != "" {
		notes = append(notes, render.Printable(b.Reason))
	}
	done := fmt.Sprintf("%d of %d", b.Done, b.Total)
	return []string{string(b.ID), b.String(), remote.BackfillState(&b), done, first, last, render.LocalTime(b.StartedAt), took, strings.Join(notes, ", ")}
}
