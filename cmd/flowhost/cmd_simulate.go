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
		Short: "Simulate schedules, or runs of a flow",
		Long: `Simulates the schedules of the flows in PATH, flow files and directories, over a period
of time: how often they fire and what they skip, which runs wait and how long, the
busiest minutes, when all workers are busy, and the effect of the zones' offset
changes. The result depends on the duration of runs: set it with --takes.

With --flow it simulates many runs of one flow instead, each alone in virtual time, and
shows how long they take and which tasks determine that: a timeline of one run, the
distribution of the durations, and how often each task is on the critical path. The
duration and success of attempts are random: sampled from the runs of a host
(--from-history), as stated (--task), or by default 5 ms on average with a success
probability of 0.88.

No plugin is called, and the plugins need not be built.`,
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
