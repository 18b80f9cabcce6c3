package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/run"
)

// triggering is trigger with its flags.
type triggering struct {
	ending
	params []string
	input  string
	key    string
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
		Args:              t.wait.between(1, 1, "FLOW"),
		ValidArgsFunction: t.complete(flowNames),
		RunE:              func(cmd *cobra.Command, args []string) error { return t.trigger(cmd, args[0]) },
	}, exitFailed, exitInvalid, exitUnreachable, exitTimeout, exitCanceled, exitInterrupted)
	flags := cmd.Flags()
	flags.StringArrayVar(&t.params, "param", nil, "param of the run, as `NAME=VALUE`; JSON unless its type is string; may be repeated")
	flags.StringVar(&t.input, "input", "", "the run's payload: `JSON`, @FILE, or - for stdin")
	flags.StringVar(&t.key, "key", "", "`TEXT` that makes the command safe to repeat")
	t.addStarting(flags)
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
	start := api.StartRequest{Flow: flow, Key: t.key}
	if t.input != "" {
		if start.Payload, err = t.readJSON(t.input); err != nil {
			return err
		}
	}
	return t.use(cmd, func(ctx context.Context, client *api.Client) error {
		if start.Params, err = askParams(ctx, cmd, client, flow, t.params); err != nil {
			return err
		}
		receipt, err := client.Start(ctx, start)
		answer := (*api.AnswerError)(nil)
		if errors.As(err, &answer) && answer.Code == run.RequestUnknownFlow {
			return unknownFlow(ctx, client, flow)
		}
		if err != nil {
			return err
		}
		return t.started(ctx, client, receipt, p)
	})
}
