package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
)

// planner is plan with its flags.
type planner struct {
	remote
	files    flowFlags
	asJSON   bool
	detailed bool
}

func (a *app) planCommand() *cobra.Command {
	p := &planner{remote: remote{app: a}}
	cmd := exits(&cobra.Command{
		Use:   "plan PATH...",
		Short: "Show what flow files would change on a running host",
		Long: `Compares the flows of PATH, flow files and folders, with those that a host has
deployed: which are added, changed and removed and in what, modules by their
digests, grants that grow, and when schedules that change fire next. Nothing is
changed. Give the PATHs and the variables that the host is given: a flow that is
in none of them counts as removed. Values of sensitive variables are not compared.`,
		Example: `  flowhost plan flows/
  flowhost plan flows/ --nats nats://nats.internal:4222 --creds ci.creds --detailed-exitcode
  flowhost plan flows/ --json | jq '.changes[] | select(.grants) | .flow'`,
		Args: atLeast(1, "PATH"),
		RunE: func(cmd *cobra.Command, paths []string) error { return p.plan(cmd, paths) },
	}, exitInvalid, exitDifference, exitUnreachable, exitInterrupted)
	flags := cmd.Flags()
	flags.BoolVar(&p.asJSON, "json", false, "print one object with everything")
	flags.BoolVar(&p.detailed, "detailed-exitcode", false, "end with exit code 3 when something would change")
	p.files.add(flags)
	p.files.addConfig(flags)
	p.add(flags)
	return cmd
}

func (p *planner) plan(cmd *cobra.Command, paths []string) error {
	set, err := p.loadWithModules(cmd, paths)
	if err != nil {
		return err
	}
	return p.use(cmd, func(ctx context.Context, client *api.Client) error {
		deployed, err := client.Deployed(ctx)
		if err != nil {
			return err
		}
		schedules, err := client.Schedules(ctx, run.ScheduleRef{})
		if err != nil {
			return err
		}
		d := differenceOf(deployed, schedules, set, time.Now())
		if p.asJSON {
			err = p.printJSON(d)
		} else {
			p.showDifference(d, len(set.Flows))
		}
		if err == nil && p.detailed && len(d.Changes) > 0 {
			err = quiet(exitDifference)
		}
		return err
	})
}

// loadWithModules loads flow files with the modules that they name.
func (p *planner) loadWithModules(cmd *cobra.Command, paths []string) (*flows.Set, error) {
	h, err := newHost(cmd.Context(), settings{}, nil, p.log(slog.LevelWarn))
	if err != nil {
		return nil, err
	}
	defer closeHost(h)
	options, err := p.files.allowed(cmd, p.app, paths[0], h)
	if err != nil {
		return nil, err
	}
	return p.load(cmd.Context(), paths, options)
}
