package main

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/cli"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/remote"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/render"
	"github.com/flowhost/flowhost/run"
)

// repeating makes a run again: retry and rerun.
type repeating struct {
	follower   remote.Follower
	how        run.Again
	task       string
	path       []run.TaskRef
	definition string
	params     []string
}

const repeatHelp = `The new run uses the flow as it is deployed now, or, with --definition recorded, as
it was when the run was accepted; and the params of the run, but for those that are
given with --param. With --fresh-params, the others come from the run's trigger and
the defaults as they are now. The new run's id is printed or, with --wait, what came
of it.

`

func retryCommand(a *cli.App) *cobra.Command {
	r := &repeating{follower: remote.Follower{Host: remote.Host{App: a}}}
	cmd := cli.Exits(&cobra.Command{
		Use:   "retry RUN",
		Short: "Run again what did not succeed, or one task",
		Long: `Makes a new run of one that has failed or was canceled. What its tasks gave that
succeeded is taken over, the others run; with --whole all of them do. Sub-flows that
did not succeed go on in the same way.

With --task one task runs again, of a run in any state, and everything else is taken
over as it was; with --downstream, what comes after it runs, too. NAME[KEY] is an
item of a fan-out, NAME/NAME a task of the sub-flow that the first one runs.

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
	flags.StringVar(&r.task, "task", "", "`NAME` of the only task to run again, NAME[KEY] or NAME/NAME")
	flags.BoolVar(&r.how.Downstream, "downstream", false, "with --task: also what comes after it")
	r.addFlags(flags)
	return cmd
}

// addFlags adds what retry and rerun have in common.
func (r *repeating) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&r.definition, "definition", "current", "the flow: `WHICH` is current or recorded")
	flags.StringArrayVar(&r.params, "param", nil, "param in the place of the run's, as `NAME=VALUE`; may be repeated")
	flags.BoolVar(&r.how.FreshParams, "fresh-params", false, "take no params from the run")
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
	return r.follower.Use(cmd, func(ctx context.Context, client *bus.Client) error {
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
		if err != nil {
			return err
		}
		return r.follower.Started(ctx, client, receipt, p)
	})
}

func (r *repeating) check(cmd *cobra.Command) error {
	switch r.definition {
	case "current", "recorded":
		r.how.Recorded = r.definition == "recorded"
	default:
		return cli.Usage(cmd, "--definition %q: it is current or recorded", r.definition)
	}
	if r.task == "" {
		if r.how.Downstream {
			return cli.Usage(cmd, "--downstream says what comes after a task: name one with --task")
		}
		return nil
	}
	if r.how.Whole {
		return cli.Usage(cmd, "--whole and --task: either all tasks or one")
	}
	var err error
	if r.path, err = run.ParseTaskPath(r.task); err != nil {
		return cli.Usage(cmd, "%w", err)
	}
	last := len(r.path) - 1
	r.how.Within, r.how.Task = r.path[:last], r.path[last]
	return nil
}
