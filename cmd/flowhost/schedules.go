package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/run"
)

func (a *app) schedulesCommand() *cobra.Command {
	r := &remote{app: a}
	asJSON := false
	cmd := exits(&cobra.Command{
		Use:   "schedules [FLOW[/TRIGGER]]",
		Short: "List schedules, and when they fire next",
		Long: `Lists the schedules of a host's flows, how they stand and when they fire next:
active, paused by somebody, off in the flow file, or ended, with no time left.`,
		Example: `  flowhost schedules
  flowhost schedules orders --json | jq .next`,
		Args:              between(0, 1, ""),
		ValidArgsFunction: r.complete(someSchedules),
		RunE: func(cmd *cobra.Command, args []string) error {
			return r.use(cmd, func(ctx context.Context, client *api.Client) error {
				var of run.ScheduleRef
				var err error
				if len(args) > 0 {
					if of, err = pickSchedules(ctx, client, args[0]); err != nil {
						return err
					}
				}
				all, err := client.Schedules(ctx, of)
				if err != nil {
					return err
				}
				return list(a, all, asJSON, scheduleColumns, 1, scheduleRow)
			})
		},
	}, exitInvalid, exitUnreachable, exitInterrupted)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one object for each schedule, on a line of its own")
	r.add(cmd.Flags())
	return cmd
}

var scheduleColumns = []string{"SCHEDULE", "STATE", "EXPRESSION", "NEXT", "FIRED", "NOTE"}

func scheduleRow(s run.ScheduleStatus) []string {
	state, next := "active", ""
	switch {
	case s.Pause != nil:
		state = "paused"
	case !s.Enabled:
		state = "off"
	case s.Next.IsZero():
		state = "ended"
	default:
		next = localTime(s.Next)
	}
	expression := s.Expression
	if s.Zone != "UTC" {
		expression += " " + s.Zone
	}
	return []string{s.String(), state, printable(expression), next, fmt.Sprint(s.Fired), scheduleNote(s)}
}

// scheduleNote is what is worth to be known of a schedule.
func scheduleNote(s run.ScheduleStatus) string {
	var notes []string
	if s.Pause != nil {
		notes = append(notes, "since "+localTime(s.Pause.At)+": "+printable(s.Pause.Reason))
	}
	if s.Failures > 0 {
		notes = append(notes, "the last "+count(s.Failures, "run")+" failed")
	}
	if len(s.Open) > 0 {
		notes = append(notes, count(len(s.Open), "run")+" open")
	}
	return strings.Join(notes, "; ")
}

// scheduleHelp is what the help of commands says about their argument
// FLOW[/TRIGGER].
const scheduleHelp = `FLOW/TRIGGER is one schedule, FLOW all schedules of a flow. Where a schedule has the
name of another flow, the schedule is meant, and FLOW/ is the flow.`

// pickSchedules finds what FLOW[/TRIGGER] names: a schedule, or all of a flow. Both
// names may have slashes, so that only the host can tell.
func pickSchedules(ctx context.Context, client *api.Client, name string) (run.ScheduleRef, error) {
	all, err := client.Schedules(ctx, run.ScheduleRef{})
	if err != nil {
		return run.ScheduleRef{}, err
	}
	for _, s := range all {
		if s.String() == name {
			return s.ScheduleRef, nil
		}
	}
	flow := strings.TrimSuffix(name, "/")
	if of := schedulesOf(all, flow); len(of) > 0 {
		return run.ScheduleRef{Flow: flow}, nil
	}
	return run.ScheduleRef{}, unknownSchedule(all, name)
}

// pickSchedule finds the one schedule that FLOW/TRIGGER names.
func pickSchedule(ctx context.Context, client *api.Client, name string) (run.ScheduleStatus, error) {
	all, err := client.Schedules(ctx, run.ScheduleRef{})
	if err != nil {
		return run.ScheduleStatus{}, err
	}
	for _, s := range all {
		if s.String() == name {
			return s, nil
		}
	}
	if of := schedulesOf(all, strings.TrimSuffix(name, "/")); len(of) > 0 {
		return run.ScheduleStatus{}, exitf(exitInvalid, "%q is a flow: give one of its schedules, %s", name, strings.Join(of, ", "))
	}
	return run.ScheduleStatus{}, unknownSchedule(all, name)
}

func schedulesOf(all []run.ScheduleStatus, flow string) []string {
	var names []string
	for _, s := range all {
		if s.Flow == flow {
			names = append(names, s.String())
		}
	}
	return names
}

func unknownSchedule(all []run.ScheduleStatus, name string) error {
	return exitf(exitInvalid, "the host serves no schedule %q%s", name, suggest(name, namesOf(all)))
}

// namesOf are the words that name schedules: of each flow, and of each of its
// schedules.
func namesOf(all []run.ScheduleStatus) []string {
	var names []string
	for _, s := range all {
		names = append(names, s.Flow, s.String())
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// someSchedules completes FLOW[/TRIGGER], and oneSchedule FLOW/TRIGGER.
func someSchedules(ctx context.Context, client *api.Client) []string {
	all, err := client.Schedules(ctx, run.ScheduleRef{})
	if err != nil {
		return nil
	}
	return namesOf(all)
}

func oneSchedule(ctx context.Context, client *api.Client) []string {
	all, err := client.Schedules(ctx, run.ScheduleRef{})
	if err != nil {
		return nil
	}
	var names []string
	for _, s := range all {
		names = append(names, s.String())
	}
	return names
}

// zoneOf is where the days of a schedule begin.
func zoneOf(s run.ScheduleStatus) (*time.Location, error) {
	zone, err := time.LoadLocation(s.Zone)
	if err != nil {
		return nil, exitf(exitFailed, "the zone of %s is not known here: %w", s, err)
	}
	return zone, nil
}
