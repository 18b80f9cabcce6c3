package main

import (
	"context"
	"strings"

	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/run"
)

const (
	// selectorHelp is what the help of commands says about their argument RUN.
	selectorHelp = `RUN is a run's id, the beginning of one that no other run has, @latest, or
FLOW@latest for the latest run of a flow.`

	latest   = "@latest"
	idLength = 26
)

// pickRun finds the run that a selector names.
func pickRun(ctx context.Context, client *api.Client, selector string) (run.ID, error) {
	if flow, ok := strings.CutSuffix(selector, latest); ok {
		return pickLatest(ctx, client, flow)
	}
	prefix := strings.ToUpper(selector)
	if id, err := run.ParseID(prefix); err == nil {
		return id, nil
	}
	low, err := run.ParseID(pad(prefix, "0"))
	if err != nil {
		return "", exitf(exitInvalid, "%q names no run: an id, the beginning of one, @latest or FLOW@latest is expected", selector)
	}
	// Two of the runs from the last id with that beginning on tell whether it is
	// unique.
	page, err := client.List(ctx, run.Query{Before: run.ID(pad(prefix, "Z")), Limit: 2, Children: true})
	if err != nil {
		return "", err
	}
	switch {
	case len(page.Runs) == 0 || page.Runs[0].Run < low:
		return "", exitf(exitInvalid, "no run's id begins with %s", prefix)
	case len(page.Runs) > 1 && page.Runs[1].Run >= low:
		return "", exitf(exitInvalid, "the ids of several runs begin with %s, such as %s and %s: give more of it", prefix, page.Runs[0].Run, page.Runs[1].Run)
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
		return "", exitf(exitInvalid, "there is no run yet")
	}
	flows, err := client.Flows(ctx, flow)
	if err == nil && len(flows) == 0 {
		return "", unknownFlow(ctx, client, flow)
	}
	return "", exitf(exitInvalid, "there is no run of flow %s yet", flow)
}
