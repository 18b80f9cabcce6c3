package main

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/run"
)

// repeating makes a run again: retry and rerun.
type repeating struct {
	ending
	how        run.RerunOptions
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

func (a *app) retryCommand() *cobra.Command {
	r := &repeating{ending: ending{remote: remote{app: a}}}
	cmd := exits(&cobra.Command{
		Use:   "retry RUN",
		Short: "Run again what did not succeed, or one task",
		Long: `Makes a new run of one that has failed or was canceled. What its tasks gave that
succeeded is taken over, the others run; with --whole all of them do. Sub-flows that
did not succeed go on in the same way.

With --task one task runs again, of a run in any state, and everything else is taken
over as it was; with --downstream, what comes after it runs, too. NAME[KEY] is an
item of a fan-out, NAME/NAME a task of the sub-flow that the first one runs.

` + repeatHelp + selectorHelp,
		Example: `  flowhost retry @latest
  flowhost retry orders@latest --whole --wait
  flowhost retry nightly@latest --task 'copy[3]' --downstream
  flowhost retry nightly@latest --task 'load[eu]/copy'`,
		Args:              r.wait.between(1, 1, "RUN"),
		ValidArgsFunction: r.complete(latestRuns),
		RunE:              func(cmd *cobra.Command, args []string) error { return r.repeat(cmd, args[0]) },
	}, exitFailed, exitInvalid, exitUnreachable, exitTimeout, exitCanceled, exitInterrupted)
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
	r.addStarting(flags)
}

func (r *repeating) repeat(cmd *cobra.Command, selector string) error {
	p, err := newProgress(r.errout, r.form)
	if err != nil {
		return usage(cmd, "%w", err)
	}
	if err := r.check(cmd); err != nil {
		return err
	}
	return r.use(cmd, func(ctx context.Context, client *bus.Client) error {
		id, err := pickRun(ctx, client, selector)
		if err != nil {
			return err
		}
		if _, err := findTask(ctx, client, id, r.path, false); err != nil {
			return err
		}
		if len(r.params) > 0 {
			record, err := client.Get(ctx, id)
			if err != nil {
				return err
			}
			if r.how.Params, err = askParams(ctx, cmd, client, record.Flow, r.params); err != nil {
				return err
			}
		}
		receipt, err := client.Retry(ctx, id, r.how)
		if err != nil {
			return err
		}
		return r.started(ctx, client, receipt, p)
	})
}

func (r *repeating) check(cmd *cobra.Command) error {
	switch r.definition {
	case "current", "recorded":
		r.how.Recorded = r.definition == "recorded"
	default:
		return usage(cmd, "--definition %q: it is current or recorded", r.definition)
	}
	if r.task == "" {
		if r.how.Downstream {
			return usage(cmd, "--downstream says what comes after a task: name one with --task")
		}
		return nil
	}
	if r.how.Whole {
		return usage(cmd, "--whole and --task: either all tasks or one")
	}
	var err error
	if r.path, err = run.ParseTaskPath(r.task); err != nil {
		return usage(cmd, "%w", err)
	}
	last := len(r.path) - 1
	r.how.Within, r.how.Task = r.path[:last], r.path[last]
	return nil
}
