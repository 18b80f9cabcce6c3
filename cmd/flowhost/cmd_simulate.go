package main

import (
	"github.com/spf13/cobra"

	"github.com/flowhost/flowhost/cmd/flowhost/internal/cli"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/simulate"
)

func simulateCommand(a *cli.App) *cobra.Command {
	s := simulate.New(a)
	cmd := cli.Exits(&cobra.Command{
		Use:   "simulate PATH...",
		Short: "Show what schedules will do, or how long runs of a flow take",
		Long: `Shows what the schedules of the flows in PATH, flow files and folders, will do from
one time up to another: how often they fire and what is skipped, what waits for
what and how long, the minutes in which most runs begin, when all workers are
busy, and what changes of the zones' offsets do. The answer depends on how long
runs take: say that with --takes.

With --flow it makes many runs of one flow instead, each alone in virtual time, and
shows how long they take and which tasks decide it: a timeline of one run, the
distribution of the durations, and how often each task is on the critical path. How
long attempts take and whether they succeed is drawn by chance: as they did in runs
of a host (--from-history), as is stated (--task), or 5 ms on average and with a
probability of 0.88.

Nothing is run, and plugins need not be built.`,
		Example: `  flowhost simulate flows/ --from 2026-03-01 --to 7d
  flowhost simulate flows/ --takes 2m --takes orders=20m --workers 8
  flowhost simulate flows/ --from 2026-03-08T00:00:00Z --to 24h --down 2026-03-08T05:00:00Z/90m
  flowhost simulate flows/ --json | jq '.schedules[] | select(.skipped > 0)'
  flowhost simulate flows/ --flow orders --task price=2s,fail:0.1 --task '*=300ms'
  flowhost simulate flows/ --flow orders --runs 5000 --seed 7 --mocks flows/orders.test.hcl
  flowhost simulate flows/ --flow orders --from-history --data flows/.flowhost --workers 2`,
		Args: cli.AtLeast(1, "PATH"),
		RunE: func(cmd *cobra.Command, paths []string) error { return s.Run(cmd, paths) },
	}, cli.ExitInvalid, cli.ExitUnreachable, cli.ExitInterrupted)
	s.AddFlags(cmd.Flags())
	return cmd
}
