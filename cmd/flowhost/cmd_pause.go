package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/cli"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/remote"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/render"
	"github.com/flowhost/flowhost/run"
)

// pausing is pause or resume with its flags.
type pausing struct {
	remote.Host
	host   bool
	reason string
}

func pauseCommand(a *cli.App) *cobra.Command {
	p := &pausing{Host: remote.Host{App: a}}
	cmd := cli.Exits(&cobra.Command{
		Use:   "pause FLOW[/TRIGGER]|--host --reason TEXT",
		Short: "Pause a schedule, or the whole host, until it is resumed",
		Long: `Pauses a schedule, or all schedules of a flow: nothing fires until it is resumed, even
after a restart of the host. Open runs continue, and other triggers still start runs.

With --host it pauses the whole host: no attempt starts until it is resumed, even after
a restart. Running attempts finish. Schedules fire and requests are accepted; their
runs wait. The timeouts of runs continue to count. This needs the operator's
credentials.

The reason is shown to whoever finds the schedule or the host paused.

` + remote.ScheduleHelp,
		Example: `  flowhost pause orders/nightly --reason "the warehouse is moving"
  flowhost pause orders --reason INC-4711
  flowhost pause --host --reason "the database is being migrated"`,
		Args:              p.oneTarget,
		ValidArgsFunction: p.Complete(remote.CompleteSchedules),
		RunE: func(cmd *cobra.Command, args []string) error {
			if strings.TrimSpace(p.reason) == "" {
				return cli.Usage(cmd, "--reason is required: it is shown to whoever finds the schedule or the host paused")
			}
			if p.host {
				return p.Use(cmd, p.pauseHost)
			}
			return changeSchedules(&p.Host, cmd, args[0], "is paused", func(ctx context.Context, client *api.Client, of run.ScheduleRef) ([]run.ScheduleRef, error) {
				return client.Pause(ctx, of, p.reason)
			})
		},
	}, cli.ExitFailed, cli.ExitInvalid, cli.ExitUnreachable, cli.ExitInterrupted)
	flags := cmd.Flags()
	flags.BoolVar(&p.host, "host", false, "pause the whole host")
	flags.StringVar(&p.reason, "reason", "", "`TEXT` recorded with it; required")
	p.AddFlags(flags)
	return cmd
}

func resumeCommand(a *cli.App) *cobra.Command {
	p := &pausing{Host: remote.Host{App: a}}
	cmd := cli.Exits(&cobra.Command{
		Use:   "resume FLOW[/TRIGGER]|--host",
		Short: "Resume a paused schedule, or the whole host",
		Long: `Resumes a paused schedule, or all schedules of a flow. Missed times fire only if the
flow sets catch_up; 'flowhost backfill' runs them later.

With --host it resumes the whole host: attempts start again. This needs the operator's
credentials.

` + remote.ScheduleHelp,
		Example: `  flowhost resume orders/nightly
  flowhost resume orders
  flowhost resume --host`,
		Args:              p.oneTarget,
		ValidArgsFunction: p.Complete(remote.CompleteSchedules),
		RunE: func(cmd *cobra.Command, args []string) error {
			if p.host {
				return p.Use(cmd, p.resumeHost)
			}
			return changeSchedules(&p.Host, cmd, args[0], "is resumed", func(ctx context.Context, client *api.Client, of run.ScheduleRef) ([]run.ScheduleRef, error) {
				return client.Resume(ctx, of)
			})
		},
	}, cli.ExitFailed, cli.ExitInvalid, cli.ExitUnreachable, cli.ExitInterrupted)
	flags := cmd.Flags()
	flags.BoolVar(&p.host, "host", false, "resume the whole host")
	p.AddFlags(flags)
	return cmd
}

// oneTarget checks that either a schedule or the host is meant.
func (p *pausing) oneTarget(cmd *cobra.Command, args []string) error {
	if p.host && len(args) > 0 {
		return cli.Usage(cmd, "%s and --host exclude each other: --host is about the whole host", args[0])
	}
	if p.host {
		return nil
	}
	return cli.Between(1, 1, "FLOW, FLOW/TRIGGER or --host")(cmd, args)
}

func (p *pausing) pauseHost(ctx context.Context, client *api.Client) error {
	paused, err := client.PauseHost(ctx, p.reason)
	switch {
	case err != nil:
		return err
	case paused.Began:
		p.App.Say("the host is paused: no attempt starts until 'flowhost resume --host'")
	default:
		p.App.Say("the host has been paused since %s: %s", render.LocalTime(paused.Pause.At), render.Printable(paused.Pause.Reason))
	}
	return nil
}

func (p *pausing) resumeHost(ctx context.Context, client *api.Client) error {
	ended, err := client.ResumeHost(ctx)
	switch {
	case err != nil:
		return err
	case ended == nil:
		p.App.Say("the host is not paused")
	default:
		p.App.Say("the host is resumed; it was paused since %s: %s", render.LocalTime(ended.At), render.Printable(ended.Reason))
	}
	return nil
}

// changeSchedules changes the schedules that an argument names, and lists
// them.
func changeSchedules(r *remote.Host, cmd *cobra.Command, name, done string, change func(context.Context, *api.Client, run.ScheduleRef) ([]run.ScheduleRef, error)) error {
	return r.Use(cmd, func(ctx context.Context, client *api.Client) error {
		of, err := remote.PickSchedules(ctx, client, name)
		if err != nil {
			return err
		}
		changed, err := change(ctx, client, of)
		for _, ref := range changed {
			r.App.Say("%s %s", ref, done)
		}
		return err
	})
}
