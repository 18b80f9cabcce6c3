package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/cli"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/flowfiles"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/plan"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/remote"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/serve"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/settings"
	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/host"
	"github.com/flowhost/flowhost/run"
)

// planner is plan with its flags.
type planner struct {
	remote.Host
	files    flowfiles.Flags
	asJSON   bool
	detailed bool
}

func planCommand(a *cli.App) *cobra.Command {
	p := &planner{Host: remote.Host{App: a}}
	cmd := cli.Exits(&cobra.Command{
		Use:   "plan PATH...",
		Short: "Show what flow files would change on a running host",
		Long: `Compares the flows of PATH, flow files and directories, with the flows that a host has
deployed: added, changed and removed flows with their blocks, modules by digest,
connections, growing grants, and the next times of changed schedules. If a task gets a
right that it does not have, the exit code is 7. The command changes nothing.
Pass the same PATHs and variables as to the host: a flow that no PATH contains counts
as removed. Values of sensitive variables are not compared.`,
		Example: `  flowhost plan flows/
  flowhost plan flows/ --nats nats://nats.internal:4222 --creds ci.creds --detailed-exitcode
  flowhost plan flows/ --json | jq '.changes[] | select(.grants) | .flow'`,
		Args: cli.AtLeast(1, "PATH"),
		RunE: func(cmd *cobra.Command, paths []string) error { return p.plan(cmd, paths) },
	}, cli.ExitInvalid, cli.ExitDifference, cli.ExitUnreachable, cli.ExitGrowth, cli.ExitInterrupted)
	flags := cmd.Flags()
	flags.BoolVar(&p.asJSON, "json", false, "print one JSON object with everything")
	flags.BoolVar(&p.detailed, "detailed-exitcode", false, "exit with code 3 if something would change, and no grant grows")
	p.files.AddFlags(flags)
	p.files.AddConfig(flags)
	p.AddFlags(flags)
	return cmd
}

func (p *planner) plan(cmd *cobra.Command, paths []string) error {
	set, err := loadWithModules(p.App, cmd, &p.files, paths)
	if err != nil {
		return err
	}
	return p.Use(cmd, func(ctx context.Context, client *api.Client) error {
		deployed, err := client.Deployed(ctx)
		if err != nil {
			return err
		}
		schedules, err := client.Schedules(ctx, run.ScheduleRef{})
		if err != nil {
			return err
		}
		d := plan.Compare(deployed, schedules, set, time.Now())
		if p.asJSON {
			err = p.App.PrintJSON(d)
		} else {
			d.Show(p.App.Out, p.App.Errout, len(set.Flows))
		}
		switch {
		case err != nil:
			return err
		case d.Grows():
			return cli.Quiet(cli.ExitGrowth)
		case p.detailed && len(d.Changes) > 0:
			return cli.Quiet(cli.ExitDifference)
		}
		return nil
	})
}

// loadWithModules loads flow files with the modules that they name.
func loadWithModules(a *cli.App, cmd *cobra.Command, files *flowfiles.Flags, paths []string) (*flows.Set, error) {
	h, err := serve.NewHost(cmd.Context(), settings.Settings{}, nil, nil, a.Log(slog.LevelWarn))
	if err != nil {
		return nil, err
	}
	defer serve.CloseHost(h)
	options, err := files.Allowed(cmd, a, paths[0], host.Catalog{Host: h, Discard: true})
	if err != nil {
		return nil, err
	}
	return flowfiles.Load(cmd.Context(), a, paths, options)
}
