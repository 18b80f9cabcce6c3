package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/cli"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/remote"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/render"
	"github.com/flowhost/flowhost/run"
)

// repeating makes a run again: retry and rerun.
type repeating struct {
	follower   remote.Follower
	how        run.RerunOptions
	task       string
	path       []run.TaskRef
	definition string
	params     []string
}

const repeatHelp = `The new run uses the flow as deployed now or, with --definition recorded, as it was
when the earlier run was accepted. It uses the params of the earlier run, except those
given with --param; with --fresh-params, the others come from the trigger and the
current defaults. Prints the new run's id or, with --wait, its result.

`

func retryCommand(a *cli.App) *cobra.Command {
	r := &repeating{follower: remote.Follower{Host: remote.Host{App: a}}}
	cmd := cli.Exits(&cobra.Command{
		Use:   "retry RUN",
		Short: "Retry what did not succeed, or one task",
		Long: `Starts a new run from one that failed or was canceled. It reuses the results of the
tasks that succeeded and runs the others; with --whole it runs all tasks. Sub-flows
that did not succeed are retried in the same way.

With --task it runs one task again, of a run in any state, and reuses everything else;
with --downstream it also runs what depends on that task. NAME[KEY] is an item of a
fan-out, NAME/NAME a task of the sub-flow that the first one runs.

` + repeatHelp + remote.SelectorHelp,
		Example: `  flowhost retry @latest
  flowhost retry orders@latest --whole --wait
  flowhost retry nightly@latest --task 'copy[3]' --downstream
  flowhost retry nightly@latest --task 'load[eu]/copy'`,
		Args:              r.follower.Wait.Between(1, 1, "RUN"),
		ValidArgsFunction: r.follower.Complete(remote.CompleteRuns),
		RunE:              func(cmd *cobra.Command, args []string) error { return r.repeat(cmd, args[0]) },
	}, cli.ExitFailed, cli.ExitInvalid, cli.ExitUnreachable, cli.ExitTimeout, cli.ExitCanceled, cli.ExitInterrupted)
	flags := cmd.Flags()
	flags.BoolVar(&r.how.Whole, "whole", false, "run all tasks again")
	flags.StringVar(&r.task, "task", "", "run only the task of this `NAME` again, NAME[KEY] or NAME/NAME")
	flags.BoolVar(&r.how.Downstream, "downstream", false, "with --task: also run what depends on it")
	r.addFlags(flags)
	return cmd
}

// addFlags adds what retry and rerun have in common.
func (r *repeating) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&r.definition, "definition", "current", "`VERSION` of the flow: current or recorded")
	flags.StringArrayVar(&r.params, "param", nil, "override a param of the run, as `NAME=VALUE`; may be repeated")
	flags.BoolVar(&r.how.FreshParams, "fresh-params", false, "do not use the params of the earlier run")
	r.follower.AddStartFlags(flags)
}

func (r *repeating) repeat(cmd *cobra.Command, selector string) error {
	p, err := render.NewProgress(r.follower.App.Errout, r.follower.Form)
	if err != nil {
		return cli.Usage(cmd, "%w", err)
	}
	if err := r.check(cmd); err != nil {
		return err
	}
	return r.follower.Use(cmd, func(ctx context.Context, client *api.Client) error {
		id, err := remote.PickRun(ctx, client, selector)
		if err != nil {
			return err
		}
		if _, err := remote.FindTask(ctx, client, id, r.path, false); err != nil {
			return err
		}
		if len(r.params) > 0 {
			record, err := client.Get(ctx, id)
			if err != nil {
				return err
			}
			if r.how.Params, err = remote.AskParams(ctx, cmd, client, record.Flow, r.params); err != nil {
				return err
			}
		}
		receipt, err := client.Retry(ctx, id, r.how)
		if answer := (*api.AnswerError)(nil); errors.As(err, &answer) && answer.Code == api.CodeSucceeded {
			return succeeded(ctx, client, id, err)
		}
		if err != nil {
			return err
		}
		return r.follower.Started(ctx, client, receipt, p)
	})
}

// namedFailures is how many failures an error names.
const namedFailures = 5

// succeeded is the error for the retry of a run that succeeded. Tasks and items of it may
// have failed nevertheless.
func succeeded(ctx context.Context, client *api.Client, id run.ID, err error) error {
	record, unread := client.Get(ctx, id)
	if unread != nil {
		return err
	}
	failed := render.FailedTasks(record)
	if len(failed) == 0 {
		return err
	}
	names := strings.Join(failed[:min(namedFailures, len(failed))], ", ")
	if more := len(failed) - namedFailures; more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	return cli.Exitf(cli.ExitFailed, `run %s succeeded although the following failed: %s; the flow continues after them.
To run one of them again: flowhost retry %s --task '%s'`, id, names, id, failed[0])
}

func (r *repeating) check(cmd *cobra.Command) error {
	switch r.definition {
	case "current", "recorded":
		r.how.Recorded = r.definition == "recorded"
	default:
		return cli.Usage(cmd, "--definition %q: current or recorded is expected", r.definition)
	}
	if r.task == "" {
		if r.how.Downstream {
			return cli.Usage(cmd, "--downstream requires --task")
		}
		return nil
	}
	if r.how.Whole {
		return cli.Usage(cmd, "--whole and --task exclude each other")
	}
	var err error
	if r.path, err = run.ParseTaskPath(r.task); err != nil {
		return cli.Usage(cmd, "%w", err)
	}
	last := len(r.path) - 1
	r.how.Within, r.how.Task = r.path[:last], r.path[last]
	return nil
}
