package remote

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/cli"
	"github.com/flowhost/flowhost/run"
)

// BackfillHelp describes the argument BACKFILL in help texts.
const BackfillHelp = `BACKFILL is a backfill's id, a unique prefix of one, or @latest.`

// PickBackfill finds the backfill that a selector names.
func PickBackfill(ctx context.Context, client *api.Client, selector string) (api.Backfill, error) {
	all, err := client.Backfills(ctx, "")
	if err != nil {
		return api.Backfill{}, err
	}
	if selector == latest {
		if len(all) == 0 {
			return api.Backfill{}, cli.Exitf(cli.ExitInvalid, "there is no backfill yet")
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
		return api.Backfill{}, cli.Exitf(cli.ExitInvalid, "no backfill's id begins with %s: 'flowhost backfill list' shows the known ones", selector)
	case 1:
		return found[0], nil
	}
	return api.Backfill{}, cli.Exitf(cli.ExitInvalid, "the ids of several backfills begin with %s, such as %s and %s: give a longer prefix", selector, found[0].ID, found[1].ID)
}

// FindBackfill returns a backfill that existed before.
func FindBackfill(ctx context.Context, client *api.Client, id run.ID) (api.Backfill, error) {
	found, err := client.Backfills(ctx, id)
	if err == nil && len(found) == 0 {
		err = cli.Exitf(cli.ExitFailed, "the host no longer has backfill %s", id)
	}
	if err != nil {
		return api.Backfill{}, err
	}
	return found[0], nil
}

// CompleteBackfills completes the ids of backfills, with their schedule and state.
func CompleteBackfills(ctx context.Context, client *api.Client) []string {
	all, err := client.Backfills(ctx, "")
	if err != nil {
		return nil
	}
	words := []string{latest}
	for i := range all {
		words = append(words, cobra.CompletionWithDesc(string(all[i].ID), all[i].String()+" "+BackfillState(&all[i])))
	}
	return words
}

// BackfillState is the state of a backfill, in words of runs.
func BackfillState(b *api.Backfill) string {
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
