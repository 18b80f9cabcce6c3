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

// filling is backfill with its flags.
type filling struct {
	remote.Host
	request  run.BackfillRequest // from the flags
	from, to string
	detach   bool
	asJSON   bool
}

func backfillCommand(a *cli.App) *cobra.Command {
	f := &filling{Host: remote.Host{App: a}}
	cmd := cli.Exits(&cobra.Command{
		Use:   "backfill FLOW/TRIGGER --from TIME --to TIME",
		Short: "Start the runs of a schedule's past times",
		Long: `Starts a run for each time of a schedule in a past range: to make up for missed runs,
to repeat runs, or to cover the time before the schedule existed. --from is part of
the range, --to is not. A run reads its nominal time as trigger.time.

The host starts a few runs at a time, after everything that is due, and resumes the
backfill after a restart. The command follows the runs to the end; Ctrl-C ends the
command, not the backfill.

A TIME is an instant, 2026-01-02T15:04:05Z, or a day or local time in the schedule's
time zone, 2026-01-02 or 2026-01-02T15:04, or 90m, 24h, 7d ago. If the range extends
beyond the times that the schedule has already processed, it is cut off there.`,
		Example: `  flowhost backfill orders/nightly --from 2026-01-01 --to 2026-02-01 --dry-run
  flowhost backfill orders/nightly --from 2026-01-01 --to 2026-02-01 --only-missing
  flowhost backfill orders/hourly --from 7d --to 0s --reverse --max-active 4 --detach
  flowhost backfill list
  flowhost backfill cancel @latest --reason "wrong range"`,
		Args:              cli.Between(1, 1, "FLOW/TRIGGER"),
		ValidArgsFunction: f.Complete(remote.CompleteSchedule),
		RunE:              func(cmd *cobra.Command, args []string) error { return f.run(cmd, args[0]) },
	}, cli.ExitFailed, cli.ExitInvalid, cli.ExitUnreachable, cli.ExitCanceled, cli.ExitInterrupted)
	flags := cmd.Flags()
	flags.StringVar(&f.from, "from", "", "first `TIME` of the range")
	flags.StringVar(&f.to, "to", "", "end of the range, a `TIME` that is not part of it")
	flags.BoolVar(&f.request.DryRun, "dry-run", false, "only print the times and the state of their runs")
	flags.BoolVar(&f.request.OnlyMissing, "only-missing", false, "skip times that already have a run, whatever its result")
	flags.IntVar(&f.request.MaxActive, "max-active", run.DefaultBackfilled, "maximum `NUMBER` of concurrent runs")
	flags.BoolVar(&f.request.Reverse, "reverse", false, "start with the latest time")
	flags.BoolVar(&f.detach, "detach", false, "print the id of the backfill and return immediately")
	flags.BoolVar(&f.asJSON, "json", false, "print one object: the finished backfill, or the plan with --dry-run and --detach")
	f.AddFlags(flags)
	cmd.AddCommand(backfillListCommand(a), backfillWatchCommand(a), backfillCancelCommand(a))
	return cmd
}

func (f *filling) run(cmd *cobra.Command, name string) error {
	if f.request.MaxActive < 1 || f.request.MaxActive > run.MaxBackfillTimes {
		return cli.Usage(cmd, "--max-active %d: an integer from 1 to %d is expected", f.request.MaxActive, run.MaxBackfillTimes)
	}
	if err := f.period(cmd, time.Now().UTC()); err != nil { // before the host is asked for the zone
		return err
	}
	return f.Use(cmd, func(ctx context.Context, client *api.Client) error {
		s, err := remote.PickSchedule(ctx, client, name)
		if err != nil {
			return err
		}
		zone, err := remote.ZoneOf(s)
		if err != nil {
			return err
		}
		if err := f.period(cmd, time.Now().In(zone)); err != nil {
			return err
		}
		if !f.request.From.Before(f.request.To) {
			return cli.Usage(cmd, "--from %s is not before --to %s", f.request.From.Format(time.RFC3339), f.request.To.Format(time.RFC3339))
		}
		f.request.Schedule = s.ScheduleRef
		if f.request.DryRun {
			return f.dryRun(ctx, client, zone)
		}
		return f.start(ctx, client)
	})
}

// period reads the range, whose days are those of the zone of now.
func (f *filling) period(cmd *cobra.Command, now time.Time) (err error) {
	if f.from == "" || f.to == "" {
		return cli.Usage(cmd, "--from and --to are required: they state the range of times")
	}
	if f.request.From, err = cli.ParseTime(f.from, now); err != nil {
		return cli.Usage(cmd, "--from: %w", err)
	}
	if f.request.To, err = cli.ParseTime(f.to, now); err != nil {
		return cli.Usage(cmd, "--to: %w", err)
	}
	return nil
}

// warn reports what may be unexpected in a plan.
func (f *filling) warn(plan run.BackfillPlan) {
	if !plan.Edited.IsZero() {
		f.App.Say("the expression changed on %s: earlier times are computed with the current one", render.LocalTime(plan.Edited))
	}
	if !plan.Until.IsZero() {
		f.App.Say("the range extends beyond the times that the schedule has processed: the backfill ends at %s, later times fire on schedule", render.LocalTime(plan.Until))
	}
}

// dryRun prints the times of a plan with the state of their runs.
func (f *filling) dryRun(ctx context.Context, client *api.Client, zone *time.Location) error {
	plan, err := client.Backfill(ctx, f.request)
	if err != nil {
		return err
	}
	f.warn(plan)
	if f.asJSON {
		return f.App.PrintJSON(plan)
	}
	known := 0
	var rows [][]string
	for _, t := range plan.Times {
		state := "missing"
		if t.Run != "" {
			state = string(t.State)
			known++
		}
		rows = append(rows, []string{t.Time.In(zone).Format(time.RFC3339Nano), state, string(t.Run)})
	}
	f.App.Out.Table(rows, 1)
	f.App.Say("%s, %d with a run and %d without; nothing was started", render.Count(plan.Total, "time"), known, plan.Total-known)
	return nil
}

// start starts a backfill, and follows it unless --detach is given.
func (f *filling) start(ctx context.Context, client *api.Client) error {
	f.request.ID = run.NewID(time.Now())
	plan, err := client.Backfill(ctx, f.request)
	if err != nil {
		return err
	}
	f.warn(plan)
	switch {
	case plan.ID == "":
		f.App.Say("nothing is missing")
	case !f.detach:
		return followBackfill(ctx, &f.Host, client, plan.ID, f.asJSON)
	case !f.asJSON:
		_, err := fmt.Fprintln(f.App.Out, plan.ID)
		return err
	}
	if f.asJSON {
		return f.App.PrintJSON(plan)
	}
	return nil
}

func backfillCancelCommand(a *cli.App) *cobra.Command {
	r := &remote.Host{App: a}
	var reason string
	cmd := cli.Exits(&cobra.Command{
		Use:   "cancel BACKFILL",
		Short: "Cancel a backfill",
		Long: `Ends a backfill early: the host cancels its running runs and starts no others. Finished
runs are not affected.

` + remote.BackfillHelp,
		Example:           `  flowhost backfill cancel @latest --reason "wrong range"`,
		Args:              cli.Between(1, 1, "BACKFILL"),
		ValidArgsFunction: r.Complete(remote.CompleteBackfills),
		RunE: func(cmd *cobra.Command, args []string) error {
			return r.Use(cmd, func(ctx context.Context, client *api.Client) error {
				b, err := remote.PickBackfill(ctx, client, args[0])
				if err != nil {
					return err
				}
				if !b.EndedAt.IsZero() {
					return cli.Exitf(cli.ExitFailed, "backfill %s has already ended", b.ID)
				}
				if err := client.CancelBackfill(ctx, b.ID, reason); err != nil {
					return err
				}
				a.Say("backfill %s is canceled", b.ID)
				return nil
			})
		},
	}, cli.ExitFailed, cli.ExitInvalid, cli.ExitUnreachable, cli.ExitInterrupted)
	cmd.Flags().StringVar(&reason, "reason", "canceled from the command line", "`TEXT` recorded with it")
	r.AddFlags(cmd.Flags())
	return cmd
}

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
