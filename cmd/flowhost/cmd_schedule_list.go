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

func scheduleListCommand(a *cli.App) *cobra.Command {
	r := &remote.Host{App: a}
	asJSON := false
	cmd := cli.Exits(&cobra.Command{
		Use:   "list [FLOW[/TRIGGER]]",
		Short: "List schedules, and when they fire next",
		Long: `Lists the schedules of a host's flows with their state and their next time. A schedule
is active, paused by an operator, off in the flow file, or ended, with no times left. A
schedule of one time (at) that made no run is missed.`,
		Example: `  flowhost schedule list
  flowhost schedule list orders --json | jq .next`,
		Args:              cli.Between(0, 1, ""),
		ValidArgsFunction: r.Complete(remote.CompleteSchedules),
		RunE: func(cmd *cobra.Command, args []string) error {
			return r.Use(cmd, func(ctx context.Context, client *api.Client) error {
				var of run.ScheduleRef
				var err error
				if len(args) > 0 {
					if of, err = remote.PickSchedules(ctx, client, args[0]); err != nil {
						return err
					}
				}
				r.Warn(ctx, client)
				all, err := client.Schedules(ctx, of)
				if err != nil {
					return err
				}
				return render.List(a.Out, all, asJSON, scheduleColumns(), scheduleRow)
			})
		},
	}, cli.ExitInvalid, cli.ExitUnreachable, cli.ExitInterrupted)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per line, for each schedule")
	r.AddFlags(cmd.Flags())
	return cmd
}

func scheduleColumns() *render.Columns {
	return &render.Columns{
		Names:  []string{"SCHEDULE", "STATE", "EXPRESSION", "NEXT", "FIRED", "NOTE"},
		States: 1, Narrow: []int{4, 2},
	}
}

func scheduleRow(s run.ScheduleStatus) []string {
	state, next := "active", ""
	switch {
	case s.Pause != nil:
		state = "paused"
	case !s.Enabled:
		state = "off"
	case missed(s) != "":
		state = "missed"
	case s.Next.IsZero():
		state = "ended"
	default:
		next = render.LocalTime(s.Next)
	}
	expression := s.Expression
	if s.Zone != "UTC" {
		expression += " " + s.Zone
	}
	return []string{s.String(), state, render.Printable(expression), next, fmt.Sprint(s.Fired), scheduleNote(s)}
}

// missed is why a schedule of one time made no run; empty for all others.
func missed(s run.ScheduleStatus) string {
	at, err := time.Parse(time.RFC3339Nano, s.Expression)
	switch {
	case err != nil || !s.Enabled || s.Pause != nil || !s.Next.IsZero() || s.Fired > 0:
		return ""
	case s.Decided.After(at):
		return "it was over when the schedule was deployed"
	}
	return "no run was started then, the host's log has the reason"
}

// scheduleNote is the note column of a schedule.
func scheduleNote(s run.ScheduleStatus) string {
	var notes []string
	if s.Pause != nil {
		notes = append(notes, "since "+render.LocalTime(s.Pause.At)+": "+render.Printable(s.Pause.Reason))
	}
	if why := missed(s); why != "" {
		notes = append(notes, why+": 'flowhost schedule fire "+s.String()+"' starts one now")
	}
	if s.Failures > 0 {
		notes = append(notes, "the last "+render.Count(s.Failures, "run")+" failed")
	}
	if len(s.Open) > 0 {
		notes = append(notes, render.Count(len(s.Open), "run")+" open")
	}
	return strings.Join(notes, "; ")
}
