package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/run"
)

// followTime is how often a backfill is looked at that is followed.
const followTime = 300 * time.Millisecond

func (a *app) backfillWatchCommand() *cobra.Command {
	r := &remote{app: a}
	asJSON := false
	cmd := exits(&cobra.Command{
		Use:   "watch BACKFILL",
		Short: "Follow a backfill to its end",
		Long: `Shows how far a backfill has come until it ends. The exit code is 1 when runs of it
have failed. Ctrl-C ends the watching, not the backfill.

` + backfillHelp,
		Example:           `  flowhost backfill watch @latest`,
		Args:              between(1, 1, "BACKFILL"),
		ValidArgsFunction: r.complete(latestBackfills),
		RunE: func(cmd *cobra.Command, args []string) error {
			return r.use(cmd, func(ctx context.Context, client *api.Client) error {
				b, err := pickBackfill(ctx, client, args[0])
				if err != nil {
					return err
				}
				return r.follow(ctx, client, b.ID, asJSON)
			})
		},
	}, exitFailed, exitInvalid, exitUnreachable, exitCanceled, exitInterrupted)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one object at the end")
	r.add(cmd.Flags())
	return cmd
}

// follow shows how far a backfill has come until nothing more comes of it.
func (r *remote) follow(ctx context.Context, client *api.Client, id run.ID, asJSON bool) error {
	line := newStatusLine(r.errout)
	r.errout.Writer = line // what else is said goes above it
	defer func() { r.errout.Writer = line.under }()
	for told := false; ; told = true {
		var b api.Backfill
		err := r.persistently(ctx, func() (err error) {
			b, err = findBackfill(ctx, client, id)
			return err
		})
		if err == nil {
			if !told {
				r.say("backfill %s of %s", b.ID, b.ScheduleRef)
			}
			line.show(progressOf(&b))
			if b.Over() {
				line.end()
				return r.concludeBackfill(&b, asJSON)
			}
			err = sleep(ctx, followTime)
		}
		if err != nil {
			line.end()
			if ctx.Err() != nil {
				r.say("backfill %s goes on: 'flowhost backfill watch %s' follows it, 'flowhost backfill cancel %s' ends it", id, id, id)
			}
			return err
		}
	}
}

// progressOf is how far a backfill has come, in one line.
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

// concludeBackfill prints what came of a backfill and says what that means for the
// program.
func (r *remote) concludeBackfill(b *api.Backfill, asJSON bool) error {
	if asJSON {
		if err := r.printJSON(b); err != nil {
			return err
		}
	} else if _, err := fmt.Fprintf(r.out, "%s %s: %s\n", b.ID, backfillState(b), strings.Join(endsOf(b), ", ")); err != nil {
		return err
	}
	if b.Failed > 0 {
		r.say("'flowhost runs --flow %s --state failed --since %s' lists the runs that failed", b.Flow, b.StartedAt.Format(time.RFC3339))
	}
	if b.Rejected > 0 {
		r.say("the host's log says why it could make no run of %s", count(b.Rejected, "time"))
	}
	if b.Reason != "" {
		r.say("the backfill is canceled: %s", printable(b.Reason))
	}
	switch backfillState(b) {
	case "failed":
		return quiet(exitFailed)
	case "canceled":
		return quiet(exitCanceled)
	}
	return nil
}
