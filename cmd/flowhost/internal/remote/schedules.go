package remote

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/cli"
	"github.com/flowhost/flowhost/run"
)

// ScheduleHelp is what the help of commands says about their argument
// FLOW[/TRIGGER].
const ScheduleHelp = `FLOW/TRIGGER is one schedule, FLOW all schedules of a flow. Where a schedule has the
name of another flow, the schedule is meant, and FLOW/ is the flow.`

// PickSchedules finds what FLOW[/TRIGGER] names: a schedule, or all of a flow. Both
// names may have slashes, so that only the host can tell.
func PickSchedules(ctx context.Context, client *bus.Client, name string) (run.ScheduleRef, error) {
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

// PickSchedule finds the one schedule that FLOW/TRIGGER names.
func PickSchedule(ctx context.Context, client *bus.Client, name string) (run.ScheduleStatus, error) {
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
		return run.ScheduleStatus{}, cli.Exitf(cli.ExitInvalid, "%q is a flow: give one of its schedules, %s", name, strings.Join(of, ", "))
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
	return cli.Exitf(cli.ExitInvalid, "the host serves no schedule %q%s", name, cli.Suggest(name, namesOf(all)))
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

// CompleteSchedules completes FLOW[/TRIGGER], and oneSchedule FLOW/TRIGGER.
func CompleteSchedules(ctx context.Context, client *bus.Client) []string {
	all, err := client.Schedules(ctx, run.ScheduleRef{})
	if err != nil {
		return nil
	}
	return namesOf(all)
}

func CompleteSchedule(ctx context.Context, client *bus.Client) []string {
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

// ZoneOf is where the days of a schedule begin.
func ZoneOf(s run.ScheduleStatus) (*time.Location, error) {
	zone, err := time.LoadLocation(s.Zone)
	if err != nil {
		return nil, cli.Exitf(cli.ExitFailed, "the zone of %s is not known here: %w", s, err)
	}
	return zone, nil
}
