package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/run"
)

// backfillHelp is what the help of commands says about their argument BACKFILL.
const backfillHelp = `BACKFILL is a backfill's id, the beginning of one that no other has, or @latest.`

func (a *app) backfillListCommand() *cobra.Command {
	r := &remote{app: a}
	asJSON := false
	cmd := exits(&cobra.Command{
		Use:     "list",
		Short:   "List backfills, newest first",
		Long:    `Lists the backfills that go on, and the last hundred that have ended, newest first.`,
		Example: `  flowhost backfill list`,
		Args:    between(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return r.use(cmd, func(ctx context.Context, client *api.Client) error {
				all, err := client.Backfills(ctx, "")
				if err != nil {
					return err
				}
				return list(a, all, asJSON, backfillColumns, 2, backfillRow)
			})
		},
	}, exitInvalid, exitUnreachable, exitInterrupted)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one object for each backfill, on a line of its own")
	r.add(cmd.Flags())
	return cmd
}

var backfillColumns = []string{"BACKFILL", "SCHEDULE", "STATE", "DONE", "STARTED", "TOOK", "NOTE"}

func backfillRow(b api.Backfill) []string {
	took := ""
	if !b.EndedAt.IsZero() {
		took = short(b.EndedAt.Sub(b.StartedAt))
	}
	notes := endsOf(&b)
	if b.Reason != "" {
		notes = append(notes, printable(b.Reason))
	}
	done := fmt.Sprintf("%d of %d", b.Done, b.Total)
	return []string{string(b.ID), b.String(), backfillState(&b), done, localTime(b.StartedAt), took, strings.Join(notes, ", ")}
}

// backfillState is a word for what has become of a backfill.
func backfillState(b *api.Backfill) string {
	switch {
	case !b.Over():
		return string(run.Running)
	case b.Failed+b.Rejected > 0:
		return string(run.Failed)
	case b.Canceled > 0 || b.Reason != "":
		return string(run.Canceled)
	}
	return string(run.Succeeded)
}

func (a *app) backfillCancelCommand() *cobra.Command {
	r := &remote{app: a}
	var reason string
	cmd := exits(&cobra.Command{
		Use:   "cancel BACKFILL",
		Short: "Cancel a backfill",
		Long: `Ends a backfill before its time: its runs that are going are canceled, and the rest
of its times makes none. Runs that have ended stay as they are.

` + backfillHelp,
		Example:           `  flowhost backfill cancel @latest --reason "wrong range"`,
		Args:              between(1, 1, "BACKFILL"),
		ValidArgsFunction: r.complete(latestBackfills),
		RunE: func(cmd *cobra.Command, args []string) error {
			return r.use(cmd, func(ctx context.Context, client *api.Client) error {
				b, err := pickBackfill(ctx, client, args[0])
				if err != nil {
					return err
				}
				if !b.EndedAt.IsZero() {
					return exitf(exitFailed, "backfill %s has ended already", b.ID)
				}
				if err := client.CancelBackfill(ctx, b.ID, reason); err != nil {
					return err
				}
				a.say("backfill %s is canceled", b.ID)
				return nil
			})
		},
	}, exitFailed, exitInvalid, exitUnreachable, exitInterrupted)
	cmd.Flags().StringVar(&reason, "reason", "canceled from the command line", "`TEXT` that is recorded with it")
	r.add(cmd.Flags())
	return cmd
}

// pickBackfill finds the backfill that a selector names.
func pickBackfill(ctx context.Context, client *api.Client, selector string) (api.Backfill, error) {
	all, err := client.Backfills(ctx, "")
	if err != nil {
		return api.Backfill{}, err
	}
	if selector == latest {
		if len(all) == 0 {
			return api.Backfill{}, exitf(exitInvalid, "there is no backfill yet")
		}
		return all[0], nil
	}
	var found []api.Backfill
	for _, b := range all {
		if strings.HasPrefix(string(b.ID), strings.ToUpper(selector)) {
			found = append(found, b)
		}
	}
	switch len(found) {
	case 0:
		return api.Backfill{}, exitf(exitInvalid, "no backfill's id begins with %s: 'flowhost backfill list' shows those that are known", selector)
	case 1:
		return found[0], nil
	}
	return api.Backfill{}, exitf(exitInvalid, "the ids of several backfills begin with %s, such as %s and %s: give more of it", selector, found[0].ID, found[1].ID)
}

// findBackfill gives a backfill that has been there.
func findBackfill(ctx context.Context, client *api.Client, id run.ID) (api.Backfill, error) {
	found, err := client.Backfills(ctx, id)
	if err == nil && len(found) == 0 {
		err = exitf(exitFailed, "the host does not know backfill %s any more", id)
	}
	if err != nil {
		return api.Backfill{}, err
	}
	return found[0], nil
}

// latestBackfills completes the ids of backfills, with what tells them apart.
func latestBackfills(ctx context.Context, client *api.Client) []string {
	all, err := client.Backfills(ctx, "")
	if err != nil {
		return nil
	}
	words := []string{latest}
	for i := range all {
		words = append(words, cobra.CompletionWithDesc(string(all[i].ID), all[i].String()+" "+backfillState(&all[i])))
	}
	return words
}
