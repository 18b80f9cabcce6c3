package main

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/cli"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/remote"
	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
)

func signalCommand(a *cli.App) *cobra.Command {
	r := &remote.Host{App: a}
	cmd := cli.Exits(&cobra.Command{
		Use:   "signal RUN WAIT [JSON]",
		Short: "End a wait of a run with a signal",
		Long: `Ends a wait for a signal, or for a message, with a payload: JSON, @FILE or - for
stdin; null without one. The command returns once the signal is durable. A wait that
has not started yet accepts no signal.

` + remote.SelectorHelp + ` 'flowhost show RUN' shows what it waits for.`,
		Example: `  flowhost signal order@latest paid '{"amount":12.5}'
  flowhost signal 01M7YYDDJ8TYRD7Q2ARHP9C7BV paid @payment.json`,
		Args:              cli.Between(2, 3, "RUN or WAIT"),
		ValidArgsFunction: r.Complete(remote.CompleteRuns),
		RunE: func(cmd *cobra.Command, args []string) error {
			payload := ""
			if len(args) > 2 {
				payload = args[2]
			}
			return answerWait(r, cmd, args, payload, "ended", func(ctx context.Context, client *api.Client, id run.ID, wait string, payload json.RawMessage) error {
				return client.Signal(ctx, id, wait, payload)
			})
		},
	}, cli.ExitFailed, cli.ExitInvalid, cli.ExitUnreachable, cli.ExitInterrupted)
	r.AddFlags(cmd.Flags())
	return cmd
}

// answerWait ends the wait that the arguments name, of the run that they select.
func answerWait(r *remote.Host, cmd *cobra.Command, args []string, input, done string,
	answer func(context.Context, *api.Client, run.ID, string, json.RawMessage) error) error {
	var payload json.RawMessage
	if input != "" {
		var err error
		if payload, err = r.App.ReadJSON(input); err != nil {
			return err
		}
	}
	wait := strings.TrimPrefix(args[1], flows.WaitPrefix)
	return r.Use(cmd, func(ctx context.Context, client *api.Client) error {
		id, err := remote.PickRun(ctx, client, args[0])
		if err != nil {
			return err
		}
		err = answer(ctx, client, id, wait, payload)
		fault := (*api.AnswerError)(nil)
		if errors.As(err, &fault) && fault.Code == api.CodeUnknownWait {
			return unknownWait(ctx, client, id, wait)
		}
		if err != nil {
			return err
		}
		r.App.Say("wait %s of run %s is %s", wait, id, done)
		return nil
	})
}

// unknownWait is the error for a wait that a run does not have.
func unknownWait(ctx context.Context, client *api.Client, id run.ID, wait string) error {
	var names []string
	if record, err := client.Get(ctx, id); err == nil {
		for _, t := range record.Tasks {
			if name, ok := strings.CutPrefix(t.Task, flows.WaitPrefix); ok {
				names = append(names, name)
			}
		}
	}
	return cli.Exitf(cli.ExitInvalid, "run %s has no wait %q%s", id, wait, cli.Suggest(wait, names))
}
