package remote

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/cli"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/render"
	"github.com/flowhost/flowhost/run"
)

// AddStartFlags adds the flags of a command that starts a run.
func (e *Follower) AddStartFlags(flags *pflag.FlagSet) {
	e.AddFlags(flags)
	flags.Lookup("json").Usage = "print the id of the run as a JSON object or, with --wait, the complete record of the run"
	flags.Var(&e.Wait, "wait", "wait for the run to end and print its output; --wait=30s waits at most that long (exit code 5)")
	flags.Lookup("wait").NoOptDefVal = "forever"
}

// Started prints the reply to a request for a run, or waits for the end of the run.
func (e *Follower) Started(ctx context.Context, client *api.Client, r run.Receipt, p *render.Progress) error {
	if err := Refusal(r); err != nil {
		return err
	}
	if r.Repeated {
		e.App.Say("the key has already started run %s", r.Run)
	}
	if e.Wait.set {
		return e.Await(ctx, client, r.Run, p)
	}
	if e.asJSON {
		return e.App.PrintJSON(newRun{Run: r.Run, Repeated: r.Repeated})
	}
	_, err := fmt.Fprintln(e.App.Out, r.Run)
	return err
}

// Refusal is the error for a request that started no run, nil if it started one.
func Refusal(r run.Receipt) error {
	switch {
	case r.Limited:
		return cli.Exitf(cli.ExitFailed, "no run was started: the flow's concurrency limit is reached, and its on_limit is \"skip\"")
	case !r.Accepted:
		return cli.Exitf(cli.ExitFailed, "no run was started: the flow's trigger does not accept this payload")
	}
	return nil
}

// newRun is the JSON of a requested run.
type newRun struct {
	Run      run.ID `json:"run"`
	Repeated bool   `json:"repeated,omitempty"`
}

// waitFlag is --wait, with or without a duration.
type waitFlag struct {
	set  bool
	time time.Duration // 0: without limit
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

// Between checks the number of arguments. A duration that follows --wait after a
// space is none of them, but looks like one.
func (w *waitFlag) Between(low, high int, what string) cobra.PositionalArgs {
	check := cli.Between(low, high, what)
	return func(cmd *cobra.Command, args []string) error {
		if w.set && len(args) > high {
			if _, err := time.ParseDuration(args[len(args)-1]); err == nil {
				return cli.Usage(cmd, "write --wait=%s, without a space", args[len(args)-1])
			}
		}
		return check(cmd, args)
	}
}
