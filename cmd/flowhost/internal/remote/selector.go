package remote

import (
	"context"
	"strings"

	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/cli"
	"github.com/flowhost/flowhost/run"
)

const (
	// SelectorHelp describes the argument RUN in help texts.
	SelectorHelp = `RUN is a run's id, a unique prefix of one, @latest, or FLOW@latest for the latest run
of a flow.`

	latest   = "@latest"
	idLength = 26
)

// PickRun finds the run that a selector names.
func PickRun(ctx context.Context, client *api.Client, selector string) (run.ID, error) {
	if flow, ok := strings.CutSuffix(selector, latest); ok {
		return pickLatest(ctx, client, flow)
	}
	prefix := strings.ToUpper(selector)
	if id, err := run.ParseID(prefix); err == nil {
		return id, nil
	}
	low, err := run.ParseID(pad(prefix, "0"))
	if err != nil {
		return "", cli.Exitf(cli.ExitInvalid, "%q is not a run: an id, a prefix of one, @latest or FLOW@latest is expected", selector)
	}
	// The last two runs up to the highest id with that prefix show whether it is
	// unique.
	page, err := client.List(ctx, run.Query{Before: run.ID(pad(prefix, "Z")), Limit: 2, Children: true})
	if err != nil {
		return "", err
	}
	switch {
	case len(page.Runs) == 0 || page.Runs[0].Run < low:
		return "", cli.Exitf(cli.ExitInvalid, "no run's id begins with %s", prefix)
	case len(page.Runs) > 1 && page.Runs[1].Run >= low:
		return "", cli.Exitf(cli.ExitInvalid, "the ids of several runs begin with %s, such as %s and %s: give a longer prefix", prefix, page.Runs[0].Run, page.Runs[1].Run)
	}
	return page.Runs[0].Run, nil
}

func pad(prefix, with string) string {
	return prefix + strings.Repeat(with, max(0, idLength-len(prefix)))
}

func pickLatest(ctx context.Context, client *api.Client, flow string) (run.ID, error) {
	page, err := client.List(ctx, run.Query{Flow: flow, Limit: 1})
	switch {
	case err != nil:
		return "", err
	case len(page.Runs) > 0:
		return page.Runs[0].Run, nil
	case flow == "":
		return "", cli.Exitf(cli.ExitInvalid, "there is no run yet")
	}
	flows, err := client.Flows(ctx, flow)
	if err == nil && len(flows) == 0 {
		return "", UnknownFlow(ctx, client, flow)
	}
	return "", cli.Exitf(cli.ExitInvalid, "there is no run of flow %s yet", flow)
}
