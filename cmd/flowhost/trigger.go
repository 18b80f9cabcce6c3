package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/run"
)

// triggering is trigger with its flags.
type triggering struct {
	ending
	waiting waitFlag
	params  []string
	input   string
	key     string
}

func (a *app) triggerCommand() *cobra.Command {
	t := &triggering{ending: ending{remote: remote{app: a}}}
	cmd := exits(&cobra.Command{
		Use:   "trigger FLOW",
		Short: "Start a run of a flow that a host serves",
		Long: `Asks a running host for a run of a flow, and prints its id once the run is
recorded: it is finished then whatever happens to the host. With --wait it is
followed to its end, and its output printed as exec does.

With --key the command may be repeated: the same key for the same flow makes one
run within a day, and its id is printed again.`,
		Example: `  flowhost trigger hello --input '{"name":"Ada"}'
  flowhost trigger orders --param region=eu --input @order.json --wait=30s
  flowhost trigger nightly --key "nightly-$(date +%F)"`,
		Args:              t.waiting.between(1, 1, "FLOW"),
		ValidArgsFunction: t.complete(flowNames),
		RunE:              func(cmd *cobra.Command, args []string) error { return t.trigger(cmd, args[0]) },
	}, exitFailed, exitInvalid, exitUnreachable, exitTimeout, exitCanceled, exitInterrupted)
	flags := cmd.Flags()
	flags.StringArrayVar(&t.params, "param", nil, "param of the run, as `NAME=VALUE`; JSON unless its type is string; may be repeated")
	flags.StringVar(&t.input, "input", "", "the run's payload: `JSON`, @FILE, or - for stdin")
	flags.StringVar(&t.key, "key", "", "`TEXT` that makes the command safe to repeat")
	t.waiting.add(flags)
	t.add(flags)
	return cmd
}

func (t *triggering) trigger(cmd *cobra.Command, flow string) error {
	p, err := newProgress(t.errout, t.form)
	if err != nil {
		return usage(cmd, "%w", err)
	}
	if err := bus.CheckToken(flow); err != nil {
		return usage(cmd, "%w", err)
	}
	start := bus.Start{Flow: flow, Key: t.key}
	if t.input != "" {
		if start.Payload, err = t.readJSON(t.input); err != nil {
			return err
		}
	}
	return t.use(cmd, func(ctx context.Context, client *bus.Client) error {
		if start.Params, err = askParams(ctx, cmd, client, flow, t.params); err != nil {
			return err
		}
		receipt, err := client.Start(ctx, start)
		answer := (*bus.AnswerError)(nil)
		if errors.As(err, &answer) && answer.Code == run.RequestUnknownFlow {
			return unknownFlow(ctx, client, flow)
		}
		if err != nil {
			return err
		}
		return t.started(ctx, client, receipt, t.waiting, p)
	})
}

// started prints what a request for a run was answered with, or waits for the end
// of the run.
func (e *ending) started(ctx context.Context, client *bus.Client, r run.Receipt, wait waitFlag, p *progress) error {
	switch {
	case r.Limited:
		return exitf(exitFailed, "as many runs are under way as the flow's concurrency allows, and its on_limit is \"skip\": no run was made")
	case !r.Accepted:
		return exitf(exitFailed, "the flow's trigger does not accept this: no run was made")
	}
	if r.Repeated {
		e.say("the key was used before: run %s was made then", r.Run)
	}
	if wait.set {
		e.wait = wait.time
		return e.await(ctx, client, r.Run, p)
	}
	if e.asJSON {
		return e.printJSON(newRun{Run: r.Run, Repeated: r.Repeated})
	}
	_, err := fmt.Fprintln(e.out, r.Run)
	return err
}

// newRun is what is printed of a run that was asked for.
type newRun struct {
	Run      run.ID `json:"run"`
	Repeated bool   `json:"repeated,omitempty"`
}

// waitFlag is --wait, with or without a duration.
type waitFlag struct {
	set  bool
	time time.Duration // 0: as long as it takes
}

func (w *waitFlag) add(flags *pflag.FlagSet) {
	flags.Var(w, "wait", "wait for the end of the run, and print its output; --wait=30s waits so long at most (exit code 5)")
	flags.Lookup("wait").NoOptDefVal = "forever"
}

// String implements pflag.Value.
func (w *waitFlag) String() string {
	if w.time == 0 {
		return ""
	}
	return w.time.String()
}

// Type implements pflag.Value.
func (w *waitFlag) Type() string { return "DURATION" }

// Set implements pflag.Value.
func (w *waitFlag) Set(text string) error {
	w.set, w.time = true, 0
	if text == "forever" {
		return nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return fmt.Errorf("%q is not a duration like 30s", text)
	}
	w.time = d
	return nil
}

// between checks the number of arguments. A duration that follows --wait after a
// space is none of them, but looks like one.
func (w *waitFlag) between(low, high int, what string) cobra.PositionalArgs {
	check := between(low, high, what)
	return func(cmd *cobra.Command, args []string) error {
		if w.set && len(args) > high {
			if _, err := time.ParseDuration(args[len(args)-1]); err == nil {
				return usage(cmd, "write --wait=%s, without a space", args[len(args)-1])
			}
		}
		return check(cmd, args)
	}
}
