package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/cli"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/remote"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/render"
	"github.com/flowhost/flowhost/run"
)

// followTime is how often a followed backfill is polled.
const followTime = 300 * time.Millisecond

func backfillWatchCommand(a *cli.App) *cobra.Command {
	r := &remote.Host{App: a}
	asJSON := false
	cmd := cli.Exits(&cobra.Command{
		Use:   "watch BACKFILL",
		Short: "Follow a backfill to its end",
		Long: `Shows the progress of a backfill until it ends. The exit code is 1 if any of its runs
failed. Ctrl-C ends the command, not the backfill.

` + remote.BackfillHelp,
		Example:           `  flowhost backfill watch @latest`,
		Args:              cli.Between(1, 1, "BACKFILL"),
		ValidArgsFunction: r.Complete(remote.CompleteBackfills),
		RunE: func(cmd *cobra.Command, args []string) error {
			return r.Use(cmd, func(ctx context.Context, client *api.Client) error {
				b, err := remote.PickBackfill(ctx, client, args[0])
				if err != nil {
					return err
				}
				return followBackfill(ctx, r, client, b.ID, asJSON)
			})
		},
	}, cli.ExitFailed, cli.ExitInvalid, cli.ExitUnreachable, cli.ExitCanceled, cli.ExitInterrupted)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one object at the end")
	r.AddFlags(cmd.Flags())
	return cmd
}

// follow shows the progress of a backfill until it ends.
func followBackfill(ctx context.Context, r *remote.Host, client *api.Client, id run.ID, asJSON bool) error {
	line := render.NewStatusLine(r.App.Errout)
	r.App.Errout.Writer = line // other messages appear above it
	defer func() { r.App.Errout.Writer = line.Under }()
	for shown := false; ; shown = true {
		var b api.Backfill
		err := r.Persistently(ctx, func() (err error) {
			b, err = remote.FindBackfill(ctx, client, id)
			return err
		})
		if err == nil {
			if !shown {
				r.App.Say("backfill %s of %s, %s", b.ID, b.ScheduleRef, nominalTimes(&b))
			}
			line.Show(progressOf(&b))
			if b.Over() {
				line.End()
				return concludeBackfill(r, &b, asJSON)
			}
			err = remote.Sleep(ctx, followTime)
		}
		if err != nil {
			line.End()
			if ctx.Err() != nil {
				r.App.Say("backfill %s continues: 'flowhost backfill watch %s' follows it, 'flowhost backfill cancel %s' cancels it", id, id, id)
			}
			return err
		}
	}
}

// nominalTimes are the nominal times of a backfill, in words.
func nominalTimes(b *api.Backfill) string {
	times := render.Count(b.Total, "nominal time")
	switch {
	case b.First.IsZero():
		return times
	case b.Total == 1:
		return times + ": " + render.Nominal(b.First)
	}
	return times + " from " + render.Nominal(b.First) + " to " + render.Nominal(b.Last)
}

// progressOf is the progress of a backfill, in one line.
func progressOf(b *api.Backfill) string {
	parts := []string{fmt.Sprintf("%d of %d done", b.Done, b.Total)}
	parts = append(parts, endsOf(b)...)
	if len(b.Active) > 0 {
		parts = append(parts, fmt.Sprintf("%d going", len(b.Active)))
	}
	return strings.Join(parts, ", ")
}

// endsOf counts the ends of a backfill's runs.
func endsOf(b *api.Backfill) []string {
	var parts []string
	for _, end := range []struct {
		n    int
		word string
	}{{b.Succeeded, "succeeded"}, {b.Failed, "failed"}, {b.Canceled, "canceled"}, {b.Rejected, "rejected"}} {
		if end.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", end.n, end.word))
		}
	}
	return parts
}

// concludeBackfill prints the result of a backfill and returns the exit code for it.
func concludeBackfill(r *remote.Host, b *api.Backfill, asJSON bool) error {
	if asJSON {
		if err := r.App.PrintJSON(b); err != nil {
			return err
		}
	} else if _, err := fmt.Fprintf(r.App.Out, "%s %s: %s\n", b.ID, remote.BackfillState(b), strings.Join(endsOf(b), ", ")); err != nil {
		return err
	}
	if b.Failed > 0 {
		r.App.Say("'flowhost runs --flow %s --state failed --since %s' lists the failed runs", b.Flow, b.StartedAt.Format(time.RFC3339))
	}
	if b.Rejected > 0 {
		r.App.Say("the host started no run for %s: see its log for the reasons", render.Count(b.Rejected, "time"))
	}
	if b.Reason != "" {
		r.App.Say("the backfill is canceled: %s", render.Printable(b.Reason))
	}
	switch remote.BackfillState(b) {
	case "failed":
		return cli.Quiet(cli.ExitFailed)
	case "canceled":
		return cli.Quiet(cli.ExitCanceled)
	}
	return nil
}
