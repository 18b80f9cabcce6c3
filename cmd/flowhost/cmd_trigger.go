package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/cli"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/remote"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/render"
	"github.com/flowhost/flowhost/run"
)

// triggering is trigger with its flags.
type triggering struct {
	follower remote.Follower
	params   []string
	input    string
	key      string
}

func triggerCommand(a *cli.App) *cobra.Command {
	t := &triggering{follower: remote.Follower{Host: remote.Host{App: a}}}
	cmd := cli.Exits(&cobra.Command{
		Use:   "trigger FLOW",
		Short: "Start a run of a flow on a running host",
		Long: `Requests a run of a flow from a running host and prints the run's id once it is
durable; from then on the run completes even if the host restarts. With --wait the
command follows the run to its end and prints its output, as exec does.

With --key the command can be repeated safely: within a day, the same key for the same
flow starts one run, and the command prints its id again.`,
		Example: `  flowhost trigger hello --input '{"name":"Ada"}'
  flowhost trigger orders --param region=eu --input @order.json --wait=30s
  flowhost trigger nightly --key "nightly-$(date +%F)"`,
		Args:              t.follower.Wait.Between(1, 1, "FLOW"),
		ValidArgsFunction: t.follower.Complete(remote.FlowNames),
		RunE:              func(cmd *cobra.Command, args []string) error { return t.trigger(cmd, args[0]) },
	}, cli.ExitFailed, cli.ExitInvalid, cli.ExitUnreachable, cli.ExitTimeout, cli.ExitCanceled, cli.ExitInterrupted)
	flags := cmd.Flags()
	flags.StringArrayVar(&t.params, "param", nil, "param of the run, as `NAME=VALUE`; JSON unless its type is string; may be repeated")
	flags.StringVar(&t.input, "input", "", "the run's payload: `JSON`, @FILE, or - for stdin")
	flags.StringVar(&t.key, "key", "", "`KEY` that makes the command safe to repeat")
	t.follower.AddStartFlags(flags)
	return cmd
}

func (t *triggering) trigger(cmd *cobra.Command, flow string) error {
	p, err := render.NewProgress(t.follower.App.Errout, t.follower.Form)
	if err != nil {
		return cli.Usage(cmd, "%w", err)
	}
	if err := bus.CheckToken(flow); err != nil {
		return cli.Usage(cmd, "%w", err)
	}
	start := api.StartRequest{Flow: flow, Key: t.key}
	if t.input != "" {
		if start.Payload, err = t.follower.App.ReadJSON(t.input); err != nil {
			return err
		}
	}
	return t.follower.Use(cmd, func(ctx context.Context, client *api.Client) error {
		t.follower.Warn(ctx, client)
		if start.Params, err = remote.AskParams(ctx, cmd, client, flow, t.params); err != nil {
			return err
		}
		receipt, err := client.Start(ctx, start)
		answer := (*api.AnswerError)(nil)
		if errors.As(err, &answer) && answer.Code == run.RequestUnknownFlow {
			return remote.UnknownFlow(ctx, client, flow)
		}
		if err != nil {
			return err
		}
		return t.follower.Started(ctx, client, receipt, p)
	})
}
