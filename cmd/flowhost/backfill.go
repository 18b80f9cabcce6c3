package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/run"
)

// filling is backfill with its flags.
type filling struct {
	remote
	request  run.BackfillRequest // from the flags
	from, to string
	detach   bool
	asJSON   bool
}

func (a *app) backfillCommand() *cobra.Command {
	f := &filling{remote: remote{app: a}}
	cmd := exits(&cobra.Command{
		Use:   "backfill FLOW/TRIGGER --from TIME --to TIME",
		Short: "Start the runs of past times of a schedule",
		Long: `Makes a run for each time of a schedule in a range of the past: for what was missed,
for what is to be done again, or for the time before there was the schedule. --from
is part of the range, --to is not. A run sees the time that it stands for as
trigger.time.

The runs come a few at a time, after everything that is due, and go on after a
restart of the host. The command follows them to the end; Ctrl-C ends the
following, not the backfill.

A TIME is an instant, 2026-01-02T15:04:05Z, or a day or local time of the schedule's
time zone, 2026-01-02 or 2026-01-02T15:04, or 90m, 24h, 7d ago. A range that goes
beyond what the schedule has decided is filled up to there.`,
		Example: `  flowhost backfill orders/nightly --from 2026-01-01 --to 2026-02-01 --dry-run
  flowhost backfill orders/nightly --from 2026-01-01 --to 2026-02-01 --only-missing
  flowhost backfill orders/hourly --from 7d --to 0s --reverse --max-active 4 --detach
  flowhost backfill list
  flowhost backfill cancel @latest --reason "wrong range"`,
		Args:              between(1, 1, "FLOW/TRIGGER"),
		ValidArgsFunction: f.complete(oneSchedule),
		RunE:              func(cmd *cobra.Command, args []string) error { return f.run(cmd, args[0]) },
	}, exitFailed, exitInvalid, exitUnreachable, exitCanceled, exitInterrupted)
	flags := cmd.Flags()
	flags.StringVar(&f.from, "from", "", "first `TIME` of the range")
	flags.StringVar(&f.to, "to", "", "`TIME` before which the range ends")
	flags.BoolVar(&f.request.DryRun, "dry-run", false, "only print the times, with what is known of their runs")
	flags.BoolVar(&f.request.OnlyMissing, "only-missing", false, "leave out times of which a run is known, however it ended")
	flags.IntVar(&f.request.MaxActive, "max-active", run.DefaultBackfilled, "`NUMBER` of runs at once")
	flags.BoolVar(&f.request.Reverse, "reverse", false, "the latest time first")
	flags.BoolVar(&f.detach, "detach", false, "print the id of the backfill and return at once")
	flags.BoolVar(&f.asJSON, "json", false, "print one object: the backfill at its end, or the plan with --dry-run and --detach")
	f.add(flags)
	cmd.AddCommand(a.backfillListCommand(), a.backfillWatchCommand(), a.backfillCancelCommand())
	return cmd
}

func (f *filling) run(cmd *cobra.Command, name string) error {
	if f.request.MaxActive < 1 || f.request.MaxActive > run.MaxBackfillTimes {
		return usage(cmd, "--max-active %d: a number from 1 to %d is expected", f.request.MaxActive, run.MaxBackfillTimes)
	}
	if err := f.period(cmd, time.Now().UTC()); err != nil { // before the host is asked for the zone
		return err
	}
	return f.use(cmd, func(ctx context.Context, client *api.Client) error {
		s, err := pickSchedule(ctx, client, name)
		if err != nil {
			return err
		}
		zone, err := zoneOf(s)
		if err != nil {
			return err
		}
		if err := f.period(cmd, time.Now().In(zone)); err != nil {
			return err
		}
		if !f.request.From.Before(f.request.To) {
			return usage(cmd, "--from %s is not before --to %s", f.request.From.Format(time.RFC3339), f.request.To.Format(time.RFC3339))
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
		return usage(cmd, "--from and --to are needed: the range of times")
	}
	if f.request.From, err = parseTime(f.from, now); err != nil {
		return usage(cmd, "--from: %w", err)
	}
	if f.request.To, err = parseTime(f.to, now); err != nil {
		return usage(cmd, "--to: %w", err)
	}
	return nil
}

// warn says what of a plan may be unexpected.
func (f *filling) warn(plan run.BackfillPlan) {
	if !plan.Edited.IsZero() {
		f.say("the expression was changed on %s: times before that are computed with today's", localTime(plan.Edited))
	}
	if !plan.Until.IsZero() {
		f.say("the range goes beyond what the schedule has decided: it is filled up to %s, what comes later fires by itself", localTime(plan.Until))
	}
}

// dryRun prints the times of a plan with what is known of their runs.
func (f *filling) dryRun(ctx context.Context, client *api.Client, zone *time.Location) error {
	plan, err := client.Backfill(ctx, f.request)
	if err != nil {
		return err
	}
	f.warn(plan)
	if f.asJSON {
		return f.printJSON(plan)
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
	f.out.table(rows, 1)
	f.say("%s, %d with a run and %d without; nothing is started", count(plan.Total, "time"), known, plan.Total-known)
	return nil
}

// start starts a backfill, and follows it unless it is to be left alone.
func (f *filling) start(ctx context.Context, client *api.Client) error {
	f.request.ID = run.NewID(time.Now())
	plan, err := client.Backfill(ctx, f.request)
	if err != nil {
		return err
	}
	f.warn(plan)
	switch {
	case plan.ID == "":
		f.say("nothing is missing")
	case !f.detach:
		return f.follow(ctx, client, plan.ID, f.asJSON)
	case !f.asJSON:
		_, err := fmt.Fprintln(f.out, plan.ID)
		return err
	}
	if f.asJSON {
		return f.printJSON(plan)
	}
	return nil
}
