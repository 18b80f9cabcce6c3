package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/cli"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/flowfiles"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/remote"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/render"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/timetable"
	"github.com/flowhost/flowhost/internal/schedsim"
)

func scheduleCommand(a *cli.App) *cobra.Command {
	cmd := group(a, &cobra.Command{
		Use:   "schedule",
		Short: "List, predict and fire schedules",
		Long: `Lists the schedules of a host's flows and fires them. 'next' predicts their times
without a host. 'flowhost pause' and 'resume' pause and resume schedules, 'flowhost
backfill' starts the runs of past times.`,
		Example: `  flowhost schedule list
  flowhost schedule fire orders/nightly --wait
  flowhost schedule next "30 2 * * *" --timezone Europe/Berlin --explain
  flowhost schedule next orders/nightly flows/`,
		SuggestFor: []string{"fire", "next"},
	})
	cmd.AddCommand(scheduleListCommand(a), scheduleNextCommand(a), scheduleFireCommand(a))
	return cmd
}

// nextTimes is schedule next with its flags.
type nextTimes struct {
	*cli.App
	files   flowfiles.Flags
	expr    timetable.Options
	from    string
	number  int
	explain bool
	asJSON  bool
}

func scheduleNextCommand(a *cli.App) *cobra.Command {
	n := &nextTimes{App: a}
	cmd := cli.Exits(&cobra.Command{
		Use:   "next EXPR|FLOW/TRIGGER [PATH...]",
		Short: "Show the next times of an expression or trigger",
		Long: `Shows the next nominal times, one per line. EXPR is a cron expression, an interval, an
instant or a calendar expression. FLOW/TRIGGER is looked up in the flow files of PATH
(default: the current directory) and uses its own time zone, bounds and jitter: if the
due time differs from the nominal one, it follows on the same line.`,
		Example: `  flowhost schedule next "30 2 * * *" --timezone America/New_York --explain
  flowhost schedule next "Mon..Fri *-*-~01 09:00" --timezone Europe/Berlin -n 3
  flowhost schedule next 15m --from 2026-01-02T15:04:05Z
  flowhost schedule next orders/nightly flows/
  flowhost schedule next @daily --json | jq -r '.times[].nominal'`,
		Args: cli.AtLeast(1, "EXPR or FLOW/TRIGGER"),
		RunE: func(cmd *cobra.Command, args []string) error { return n.show(cmd, args[0], args[1:]) },
	}, cli.ExitInvalid)
	flags := cmd.Flags()
	flags.StringVar(&n.expr.Zone, "timezone", "", "time `ZONE` of EXPR and of the output, such as Europe/Berlin; default: UTC")
	flags.StringVar(&n.expr.DST, "dst", "", "`MODE` for local times of EXPR that are skipped or repeated: cron (default), skip, shift, first, last or both")
	flags.StringVar(&n.expr.Name, "name", "", "`NAME` from which H in a cron expression is derived; for a trigger, it is FLOW/TRIGGER")
	flags.StringVar(&n.from, "from", "", "start at this `TIME`, inclusive: 2026-01-02, 2026-01-02T15:04:05Z, or 24h, 7d ago; default: now")
	flags.IntVarP(&n.number, "number", "n", 5, "`NUMBER` of times to show")
	flags.BoolVar(&n.explain, "explain", false, "explain the effect of the zone's next two offset changes")
	flags.BoolVar(&n.asJSON, "json", false, "print one JSON object with the nominal and due times")
	n.files.AddFlags(flags)
	return cmd
}

func (n *nextTimes) show(cmd *cobra.Command, what string, paths []string) error {
	if n.number < 1 {
		return cli.Usage(cmd, "-n %d: an integer of at least 1 is expected", n.number)
	}
	t, err := n.find(cmd, what, paths)
	if err != nil {
		return err
	}
	from := time.Now().In(t.Zone)
	if n.from != "" {
		if from, err = cli.ParseTime(n.from, from); err != nil {
			return cli.Usage(cmd, "--from: %w", err)
		}
		from = from.Add(-1)
	}
	var changes []schedsim.Change
	if n.explain {
		changes = t.Changes(from, 2)
	}
	times := t.Next(from, n.number)
	if n.asJSON {
		return n.PrintJSON(t.JSON(times, changes))
	}
	for _, f := range times {
		fmt.Fprintln(n.Out, f)
	}
	n.comment(t, len(times))
	if n.explain {
		timetable.ShowChanges(n.Out, t, changes)
	}
	return nil
}

// comment explains an empty or short list of times.
func (n *nextTimes) comment(t *timetable.Timetable, shown int) {
	if t.Trigger != nil && !t.Trigger.Enabled {
		n.Say("the schedule is disabled: enabled = false")
	}
	if t.Trigger != nil && t.Trigger.Count > 0 {
		n.Say("the schedule ends after %s; only its host counts them", render.Count(t.Trigger.Count, "run"))
	}
	switch {
	case shown == 0:
		n.Say("no more times")
	case shown < n.number:
		n.Say("no more times after these")
	}
}

// find finds the schedule of an expression or of a trigger.
func (n *nextTimes) find(cmd *cobra.Command, what string, paths []string) (*timetable.Timetable, error) {
	if timetable.IsTriggerName(what) {
		if zone, err := time.LoadLocation(what); err == nil {
			return nil, cli.Usage(cmd, "%s is a time zone: pass it with --timezone, after an expression", zone)
		}
		if n.expr.Zone != "" || n.expr.DST != "" {
			return nil, cli.Usage(cmd, "--timezone and --dst apply to expressions: trigger %s has its own", what)
		}
		return n.ofTrigger(cmd, what, paths)
	}
	if len(paths) > 0 {
		return nil, cli.Usage(cmd, "unexpected argument %q: PATH requires FLOW/TRIGGER, and %q is parsed as an expression, which must be quoted", paths[0], what)
	}
	return timetable.OfExpression(cmd, strings.TrimSpace(what), n.expr)
}

func (n *nextTimes) ofTrigger(cmd *cobra.Command, what string, paths []string) (*timetable.Timetable, error) {
	if len(paths) == 0 {
		paths = []string{"."}
	}
	options, err := n.files.Allowed(cmd, n.App, paths[0], nil)
	if err != nil {
		return nil, err
	}
	set, err := flowfiles.Load(cmd.Context(), n.App, paths, options)
	if err != nil {
		return nil, err
	}
	f, t, err := timetable.FindSchedule(cmd, set, what)
	if err != nil {
		return nil, err
	}
	return timetable.OfTrigger(f, t)
}

func scheduleFireCommand(a *cli.App) *cobra.Command {
	e := &remote.Follower{Host: remote.Host{App: a}}
	var params []string
	var key string
	cmd := cli.Exits(&cobra.Command{
		Use:   "fire FLOW/TRIGGER",
		Short: "Start a run of a schedule now",
		Long: `Starts a run of a schedule now, with the params of its trigger, even while the
schedule is paused or disabled. Its next time does not change. Prints the run's id or,
with --wait, its result. While an earlier run of the schedule is open, the overlap
policy may reject another one.

With --key the command can be repeated safely: within a day, the same key for the same
flow starts one run, and the command prints its id again.`,
		Example: `  flowhost schedule fire orders/nightly
  flowhost schedule fire orders/nightly --param full=true --wait
  flowhost schedule fire orders/nightly --key INC-4711`,
		Args:              e.Wait.Between(1, 1, "FLOW/TRIGGER"),
		ValidArgsFunction: e.Complete(remote.CompleteSchedule),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := render.NewProgress(e.App.Errout, e.Form)
			if err != nil {
				return cli.Usage(cmd, "%w", err)
			}
			return e.Use(cmd, func(ctx context.Context, client *api.Client) error {
				s, err := remote.PickSchedule(ctx, client, args[0])
				if err != nil {
					return err
				}
				values, err := remote.AskParams(ctx, cmd, client, s.Flow, params)
				if err != nil {
					return err
				}
				receipt, err := client.Fire(ctx, s.ScheduleRef, values, key)
				if err != nil {
					return err
				}
				return e.Started(ctx, client, receipt, p)
			})
		},
	}, cli.ExitFailed, cli.ExitInvalid, cli.ExitUnreachable, cli.ExitTimeout, cli.ExitCanceled, cli.ExitInterrupted)
	flags := cmd.Flags()
	flags.StringArrayVar(&params, "param", nil, "param of the run, as `NAME=VALUE`; JSON unless its type is string; may be repeated")
	flags.StringVar(&key, "key", "", "`KEY` that makes the command safe to repeat")
	e.AddStartFlags(flags)
	return cmd
}
