package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/run"
)

// addStarting adds the flags of a command that starts a run.
func (e *ending) addStarting(flags *pflag.FlagSet) {
	e.add(flags)
	flags.Lookup("json").Usage = "print the id of the run as an object or, with --wait, the whole record of the run"
	flags.Var(&e.wait, "wait", "wait for the end of the run, and print its output; --wait=30s waits so long at most (exit code 5)")
	flags.Lookup("wait").NoOptDefVal = "forever"
}

// started prints what a request for a run was answered with, or waits for the end
// of the run.
func (e *ending) started(ctx context.Context, client *api.Client, r run.Receipt, p *progress) error {
	if err := refusal(r); err != nil {
		return err
	}
	if r.Repeated {
		e.say("the key was used before: run %s was made then", r.Run)
	}
	if e.wait.set {
		return e.await(ctx, client, r.Run, p)
	}
	if e.asJSON {
		return e.printJSON(newRun{Run: r.Run, Repeated: r.Repeated})
	}
	_, err := fmt.Fprintln(e.out, r.Run)
	return err
}

// refusal says why a request made no run, nil when it made one.
func refusal(r run.Receipt) error {
	switch {
	case r.Limited:
		return exitf(exitFailed, "as many runs are under way as the flow's concurrency allows, and its on_limit is \"skip\": no run was made")
	case !r.Accepted:
		return exitf(exitFailed, "the flow's trigger does not accept this: no run was made")
	}
	return nil
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
