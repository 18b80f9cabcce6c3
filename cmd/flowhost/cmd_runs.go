package main

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/cli"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/remote"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/render"
	"github.com/flowhost/flowhost/run"
)

// listing is runs with its flags.
type listing struct {
	remote.Host
	flow         string
	states       []string
	since, until string
	nominal      string
	limit        int
	children     bool
	asJSON       bool
}

func runsCommand(a *cli.App) *cobra.Command {
	l := &listing{Host: remote.Host{App: a}}
	cmd := cli.Exits(&cobra.Command{
		Use:   "runs",
		Short: "List runs, newest first",
		Long: `Lists the runs of a host, open and finished, newest first. Runs of sub-flows are listed
with --children, or if --flow names their flow. NOMINAL is the time for which a
schedule or a backfill made the run, also if it was run again. NOTE is the code of the
error, or what a pending run waits for. A terminal that is too narrow shows fewer
columns.`,
		Example: `  flowhost runs
  flowhost runs --flow orders --state failed --since 24h
  flowhost runs --flow orders --nominal 2026-01-02..2026-01-05
  flowhost runs --since 2026-01-02 --until 2026-01-03 --limit 0 --json | jq .run`,
		Args: cli.Between(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error { return l.list(cmd) },
	}, cli.ExitInvalid, cli.ExitUnreachable, cli.ExitInterrupted)
	flags := cmd.Flags()
	flags.StringVar(&l.flow, "flow", "", "only runs of the flow of this `NAME`")
	flags.StringSliceVar(&l.states, "state", nil, "only runs in this `STATE`: pending, running, succeeded, failed or canceled; may be repeated")
	flags.StringVar(&l.since, "since", "", "only runs accepted since this `TIME`: 2026-01-02, 2026-01-02T15:04:05Z, or 90m, 24h, 7d ago")
	flags.StringVar(&l.until, "until", "", "only runs accepted before this `TIME`")
	flags.StringVar(&l.nominal, "nominal", "", "only runs for nominal times in the range `FROM..TO`, where either end may be missing and TO is not included, or of one day or instant")
	flags.IntVar(&l.limit, "limit", 20, "maximum `NUMBER` of runs, 0 for all")
	flags.BoolVar(&l.children, "children", false, "also the runs of sub-flows")
	flags.BoolVar(&l.asJSON, "json", false, "print one JSON object per line, for each run")
	l.AddFlags(flags)
	cmd.RegisterFlagCompletionFunc("flow", l.Complete(remote.FlowNames))
	return cmd
}

func (l *listing) list(cmd *cobra.Command) error {
	query, err := l.query(cmd, time.Now())
	if err != nil {
		return err
	}
	return l.Use(cmd, func(ctx context.Context, client *api.Client) error {
		l.Warn(ctx, client)
		columns := runColumns()
		for left := l.limit; ; {
			query.Limit = run.MaxPage
			if l.limit > 0 {
				query.Limit = min(left, run.MaxPage)
			}
			page, err := client.List(ctx, query)
			if err != nil {
				return err
			}
			if len(page.Runs) == 0 && query.Before == "" && l.flow != "" {
				return remote.CheckFlow(ctx, client, l.flow)
			}
			if err := render.List(l.App.Out, page.Runs, l.asJSON, columns, runRow); err != nil {
				return err
			}
			left -= len(page.Runs)
			query.Before = page.Next
			switch {
			case page.Next == "":
				return nil
			case l.limit > 0 && left <= 0:
				if l.App.Out.Interactive {
					l.App.Say("older runs may exist: --limit %d shows more", 5*l.limit)
				}
				return nil
			}
		}
	})
}

func (l *listing) query(cmd *cobra.Command, now time.Time) (run.Query, error) {
	q := run.Query{Flow: l.flow, Children: l.children}
	if l.limit < 0 {
		return q, cli.Usage(cmd, "--limit %d: an integer from 0 is expected; 0 is all runs", l.limit)
	}
	known := []string{string(run.Pending), string(run.Running), string(run.Succeeded), string(run.Failed), string(run.Canceled)}
	for _, state := range l.states {
		q.States = append(q.States, run.State(state))
		if !slices.Contains(known, state) {
			return q, cli.Usage(cmd, "--state %q is not a state of a run%s", state, cli.Suggest(state, known))
		}
	}
	var err error
	if q.Since, err = cli.ParseTime(l.since, now); err != nil {
		return q, cli.Usage(cmd, "--since: %w", err)
	}
	if q.Until, err = cli.ParseTime(l.until, now); err != nil {
		return q, cli.Usage(cmd, "--until: %w", err)
	}
	if q.NominalSince, q.NominalUntil, err = cli.ParseTimes(l.nominal, now); err != nil {
		return q, cli.Usage(cmd, "--nominal: %w", err)
	}
	return q, nil
}

func runColumns() *render.Columns {
	return &render.Columns{
		Names:  []string{"RUN", "FLOW", "STATE", "NOMINAL", "ACCEPTED", "TOOK", "TRIGGER", "NOTE"},
		States: 2, Narrow: []int{6, 5, 4, 3, 7},
	}
}

func runRow(s run.Summary) []string {
	took, nominal := "", ""
	switch {
	case s.FinishedAt != nil:
		took = render.Short(s.FinishedAt.Sub(s.CreatedAt))
	case s.State == run.Running:
		took = render.Elapsed(s.CreatedAt) + " so far"
	}
	if s.Trigger.Kind.Scheduled() {
		nominal = render.Nominal(s.Trigger.Time)
	}
	trigger := string(s.Trigger.Kind)
	if s.Trigger.Name != "" {
		trigger += " " + s.Trigger.Name
	}
	if s.Parent != "" {
		trigger += " of " + string(s.Parent)
	}
	note := render.RunWaits(s.WaitsFor)
	if s.Error != "" {
		note = render.Printable(s.Error)
	}
	return []string{string(s.Run), s.Flow, string(s.State), nominal, render.LocalTime(s.CreatedAt), took, trigger, note}
}
