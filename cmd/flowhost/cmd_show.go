package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/cli"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/remote"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/render"
	"github.com/flowhost/flowhost/run"
)

// showing is show with its flags.
type showing struct {
	remote.Host
	task   string
	failed bool
	asJSON bool
}

func showCommand(a *cli.App) *cobra.Command {
	s := &showing{Host: remote.Host{App: a}}
	cmd := cli.Exits(&cobra.Command{
		Use:   "show RUN",
		Short: "Show a run with its tasks",
		Long: `Shows a run: its state, its trigger, and its tasks with their attempts, errors and
results. Long values are truncated; --json prints them in full. Tasks that run a flow
are shown with the tasks of that run.

A fan-out of more than ten items is summed up, with its first failed items. --task
shows one task with all of its items, --failed all tasks and items that failed.
NAME[KEY] is an item of a fan-out, NAME/NAME a task of the sub-flow that the first one
runs.

` + remote.SelectorHelp,
		Example: `  flowhost show @latest
  flowhost show orders@latest --json | jq .output
  flowhost show nightly@latest --failed
  flowhost show nightly@latest --task 'load[eu]/copy'
  flowhost show 01M7YYDDJ8TYRD7Q2ARHP9C7BV`,
		Args:              cli.Between(1, 1, "RUN"),
		ValidArgsFunction: s.Complete(remote.CompleteRuns),
		RunE:              func(cmd *cobra.Command, args []string) error { return s.show(cmd, args[0]) },
	}, cli.ExitInvalid, cli.ExitUnreachable, cli.ExitInterrupted)
	flags := cmd.Flags()
	flags.StringVar(&s.task, "task", "", "show only the task of this `NAME` with all of its items, NAME[KEY] or NAME/NAME")
	flags.BoolVar(&s.failed, "failed", false, "show only tasks and items that failed")
	flags.BoolVar(&s.asJSON, "json", false, "print the complete record of the run")
	s.AddFlags(flags)
	return cmd
}

func (s *showing) show(cmd *cobra.Command, selector string) error {
	path, err := remote.TaskPath(s.task)
	switch {
	case err != nil:
		return cli.Usage(cmd, "%w", err)
	case s.asJSON && (s.failed || s.task != ""):
		return cli.Usage(cmd, "--json prints the whole record: select tasks of it with a program such as jq, without --task and --failed")
	}
	return s.Use(cmd, func(ctx context.Context, client *api.Client) error {
		s.Warn(ctx, client)
		id, err := remote.PickRun(ctx, client, selector)
		if err != nil {
			return err
		}
		if id, err = remote.FindTask(ctx, client, id, path, true); err != nil {
			return err
		}
		record, err := client.Get(ctx, id)
		if err != nil {
			return err
		}
		if s.asJSON {
			return s.App.PrintJSON(record)
		}
		s.describe(ctx, client, record, render.Selection{Task: remote.LastOf(path), Failed: s.failed})
		if record.Truncated {
			s.App.Say("the record is too large for one message: items of fan-outs, or inputs and outputs of tasks, are omitted")
		}
		return nil
	})
}

// describe writes a run, or only the selected tasks of it.
func (s *showing) describe(ctx context.Context, client *api.Client, record *run.Record, selected render.Selection) {
	if selected == (render.Selection{}) {
		s.App.Out.DescribeRun(ctx, client, record)
		return
	}
	if !s.App.Out.DescribeTasks(ctx, client, record, selected) {
		s.App.Say("no selected task or item of run %s failed", record.Run)
	}
}
