package remote

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/cli"
	"github.com/flowhost/flowhost/run"
)

// ScheduleHelp describes the argument FLOW[/TRIGGER] in help texts.
const ScheduleHelp = `FLOW/TRIGGER is one schedule, FLOW all schedules of a flow. If a schedule has the
same name as a flow, the name selects the schedule, and FLOW/ selects the flow.`

// PickSchedules finds what FLOW[/TRIGGER] names: a schedule, or all of a flow. Both
// names may have slashes, so that only the host can decide.
func PickSchedules(ctx context.Context, client *api.Client, name string) (run.ScheduleRef, error) {
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
func PickSchedule(ctx context.Context, client *api.Client, name string) (run.ScheduleStatus, error) {
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
		return run.ScheduleStatus{}, cli.Exitf(cli.ExitInvalid, "%q is a flow: name one of its schedules, %s", name, strings.Join(of, ", "))
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

// namesOf are the names that select schedules: of each flow, and of each of its
// schedules.
func namesOf(all []run.ScheduleStatus) []string {
	var names []string
	for _, s := range all {
		names = append(names, s.Flow, s.String())
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// CompleteSchedules completes FLOW[/TRIGGER], and CompleteSchedule FLOW/TRIGGER.
func CompleteSchedules(ctx context.Context, client *api.Client) []string {
	all, err := client.Schedules(ctx, run.ScheduleRef{})
	if err != nil {
		return nil
	}
	return namesOf(all)
}

func CompleteSchedule(ctx context.Context, client *api.Client) []string {
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

// ZoneOf is the time zone of a schedule.
func ZoneOf(s run.ScheduleStatus) (*time.Location, error) {
	zone, err := time.LoadLocation(s.Zone)
	if err != nil {
		return nil, cli.Exitf(cli.ExitFailed, "the time zone of %s is unknown on this machine: %w", s, err)
	}
	return zone, nil
}
