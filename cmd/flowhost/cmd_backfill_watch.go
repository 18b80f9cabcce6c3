package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/cli"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/remote"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/render"
	"github.com/flowhost/flowhost/run"
)

// followTime is how often a backfill is looked at that is followed.
const followTime = 300 * time.Millisecond

func backfillWatchCommand(a *cli.App) *cobra.Command {
	r := &remote.Host{App: a}
	asJSON := false
	cmd := cli.Exits(&cobra.Command{
		Use:   "watch BACKFILL",
		Short: "Follow a backfill to its end",
		Long: `Shows how far a backfill has come until it ends. The exit code is 1 when runs of it
have failed. Ctrl-C ends the watching, not the backfill.

` + remote.BackfillHelp,
		Example:           `  flowhost backfill watch @latest`,
		Args:              cli.Between(1, 1, "BACKFILL"),
		ValidArgsFunction: r.Complete(remote.CompleteBackfills),
		RunE: func(cmd *cobra.Command, args []string) error {
			return r.Use(cmd, func(ctx context.Context, client *bus.Client) error {
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

// follow shows how far a backfill has come until nothing more comes of it.
func followBackfill(ctx context.Context, r *remote.Host, client *bus.Client, id run.ID, asJSON bool) error {
	line := render.NewStatusLine(r.App.Errout)
	r.App.Errout.Writer = line // what else is said goes above it
	defer func() { r.App.Errout.Writer = line.Under }()
	for told := false; ; told = true {
		var b bus.Backfill
		err := r.Persistently(ctx, func() (err error) {
			b, err = remote.FindBackfill(ctx, client, id)
			return err
		})
		if err == nil {
			if !told {
				r.App.Say("backfill %s of %s", b.ID, b.ScheduleRef)
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
				r.App.Say("backfill %s goes on: 'flowhost backfill watch %s' follows it, 'flowhost backfill cancel %s' ends it", id, id, id)
			}
			return err
		}
	}
}

// progressOf is how far a backfill has come, in one line.
func progressOf(b *bus.Backfill) string {
	parts := []string{fmt.Sprintf("%d of %d done", b.Done, b.Total)}
	parts = append(parts, endsOf(b)...)
	if len(b.Active) > 0 {
		parts = append(parts, fmt.Sprintf("%d going", len(b.Active)))
	}
	return strings.Join(parts, ", ")
}

// endsOf counts the ends of a backfill's runs.
func endsOf(b *bus.Backfill) []string {
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

// concludeBackfill prints what came of a backfill and says what that means for the
// program.
func concludeBackfill(r *remote.Host, b *bus.Backfill, asJSON bool) error {
	if asJSON {
		if err := r.App.PrintJSON(b); err != nil {
			return err
		}
	} else if _, err := fmt.Fprintf(r.App.Out, "%s %s: %s\n", b.ID, remote.BackfillState(b), strings.Join(endsOf(b), ", ")); err != nil {
		return err
	}
	if b.Failed > 0 {
		r.App.Say("'flowhost runs --flow %s --state failed --since %s' lists the runs that failed", b.Flow, b.StartedAt.Format(time.RFC3339))
	}
	if b.Rejected > 0 {
		r.App.Say("the host's log says why it could make no run of %s", render.Count(b.Rejected, "time"))
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
