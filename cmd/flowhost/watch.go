package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/run"
)

// errWaited ends the waiting for a run that goes on.
var errWaited = errors.New("the time given with --wait is up")

// ending follows a run to its end and shows what came of it, as exec does.
type ending struct {
	remote
	asJSON bool
	form   string // of the progress
	wait   waitFlag
}

func (e *ending) add(flags *pflag.FlagSet) {
	e.remote.add(flags)
	flags.BoolVar(&e.asJSON, "json", false, "print the whole record of the run")
	flags.StringVar(&e.form, "progress", "auto", "`FORM` of the progress on stderr: auto, plain, json or quiet")
}

func (a *app) watchCommand() *cobra.Command {
	e := &ending{remote: remote{app: a}}
	cmd := exits(&cobra.Command{
		Use:   "watch RUN",
		Short: "Follow a run to its end",
		Long: `Shows what happens to a run until it ends, and then its output, as exec does. The
exit code is that of the run. Ctrl-C ends the watching, not the run.

` + selectorHelp,
		Example: `  flowhost watch @latest
  flowhost watch orders@latest --progress quiet && echo done`,
		Args:              between(1, 1, "RUN"),
		ValidArgsFunction: e.complete(latestRuns),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := newProgress(e.errout, e.form)
			if err != nil {
				return usage(cmd, "%w", err)
			}
			return e.use(cmd, func(ctx context.Context, client *api.Client) error {
				id, err := pickRun(ctx, client, args[0])
				if err != nil {
					return err
				}
				return e.await(ctx, client, id, p)
			})
		},
	}, exitFailed, exitInvalid, exitUnreachable, exitCanceled, exitInterrupted)
	e.add(cmd.Flags())
	return cmd
}

// await follows a run to its end, or as long as the command is to wait.
func (e *ending) await(ctx context.Context, client *api.Client, id run.ID, p *progress) error {
	waiting := ctx
	if e.wait.time > 0 {
		var stop context.CancelFunc
		waiting, stop = context.WithTimeoutCause(ctx, e.wait.time, errWaited)
		defer stop()
	}
	err := e.follow(waiting, client, id, p)
	if cause := context.Cause(waiting); err != nil && cause != nil {
		e.say("run %s goes on: 'flowhost watch %s' follows it", id, id)
		if errors.Is(cause, errWaited) {
			return &exitError{exitTimeout, cause}
		}
		return cause
	}
	if err != nil {
		return err
	}
	var record *run.Record
	err = e.persistently(ctx, func() (err error) {
		record, err = client.Get(ctx, id)
		return err
	})
	if err != nil {
		return err
	}
	return e.conclude(record)
}

// follow tells the progress what happens to a run until it is done.
func (e *ending) follow(ctx context.Context, client *api.Client, id run.ID, p *progress) error {
	story := retelling{progress: p}
	for seen := uint64(0); ; {
		var record *run.Record
		err := e.persistently(ctx, func() (err error) {
			record, seen, err = client.Watch(ctx, id, seen, pollTime)
			return err
		})
		if err != nil {
			return err
		}
		if record == nil {
			continue
		}
		if err := story.tell(ctx, record); err != nil {
			return err
		}
		if record.State.Done() {
			return nil
		}
	}
}

// conclude prints the result of a run and says what its end means for the program.
func (e *ending) conclude(record *run.Record) error {
	if err := e.printResult(record, e.asJSON); err != nil || record.State == run.Succeeded {
		return err
	}
	e.tellFailure(record)
	if record.State == run.Canceled {
		return quiet(exitCanceled)
	}
	return quiet(exitFailed)
}

// printResult prints what a run that has ended gave: its output if it succeeded, or
// with asJSON its whole record in any case.
func (a *app) printResult(record *run.Record, asJSON bool) error {
	switch {
	case asJSON:
		return a.printJSON(record)
	case record.State == run.Succeeded:
		return a.printJSON(record.Output)
	}
	return nil
}

// tellFailure says why a run did not succeed.
func (e *ending) tellFailure(record *run.Record) {
	failed, told := failures(record)
	for _, t := range failed {
		e.say("%s %s %s: %s", e.errout.paint(red, "Error:"), taskName(t), ended(t.Error.Outcome), failureText(t.Error))
		if t.Child != "" {
			e.say("'flowhost show %s' shows what happened in it", t.Child)
		} else if t.Attempts > 0 {
			e.say("'flowhost logs %s %s' shows what it wrote", record.Run, t.Task)
		}
	}
	switch {
	case told || record.Error == nil:
	case record.State == run.Canceled:
		e.say("run %s is canceled: %s", record.Run, printable(record.Error.Message))
	default:
		e.say("%s run %s: %s", e.errout.paint(red, "Error:"), record.State, failureText(record.Error))
	}
}
