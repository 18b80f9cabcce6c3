package main

import (
	"context"
	"encoding/json"
	"errors"
	"os/user"
	"strings"

	"github.com/spf13/cobra"

	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
)

func (a *app) approveCommand() *cobra.Command {
	r := &remote{app: a}
	var deny bool
	var reason, payload string
	cmd := exits(&cobra.Command{
		Use:   "approve RUN WAIT",
		Short: "Approve what a run waits for, or refuse it",
		Long: `Decides a wait for an approval: the run goes on, or with --deny the wait fails.
The command returns when the decision is recorded. Who decided is recorded as the
name of the user who calls the command; nobody checks it.

` + selectorHelp + ` 'flowhost show RUN' tells what it waits for.`,
		Example: `  flowhost approve order@latest manager
  flowhost approve order@latest manager --payload '{"discount":5}'
  flowhost approve order@latest manager --deny --reason "too expensive"`,
		Args:              between(2, 2, "RUN or WAIT"),
		ValidArgsFunction: r.complete(latestRuns),
		RunE: func(cmd *cobra.Command, args []string) error {
			decision := run.Approval{Approved: !deny, By: userName(), Reason: reason}
			said := "approved"
			if deny {
				said = "refused"
			}
			return r.answerWait(cmd, args, payload, said, func(ctx context.Context, client *api.Client, id run.ID, wait string, payload json.RawMessage) error {
				decision.Payload = payload
				return client.Approve(ctx, id, wait, decision)
			})
		},
	}, exitFailed, exitInvalid, exitUnreachable, exitInterrupted)
	flags := cmd.Flags()
	flags.BoolVar(&deny, "deny", false, "refuse it: the wait fails")
	flags.StringVar(&reason, "reason", "", "`TEXT` that is recorded with it")
	flags.StringVar(&payload, "payload", "", "what the flow sees as payload.payload: `JSON`, @FILE, or - for stdin")
	r.add(flags)
	return cmd
}

func (a *app) signalCommand() *cobra.Command {
	r := &remote{app: a}
	cmd := exits(&cobra.Command{
		Use:   "signal RUN WAIT [JSON]",
		Short: "End a wait of a run with a signal",
		Long: `Ends a wait for a signal, or for a message, with a payload: JSON, @FILE or - for
stdin; null without one. The command returns when the signal is recorded. A wait
that has not started yet takes none.

` + selectorHelp + ` 'flowhost show RUN' tells what it waits for.`,
		Example: `  flowhost signal order@latest paid '{"amount":12.5}'
  flowhost signal 01M7YYDDJ8TYRD7Q2ARHP9C7BV paid @payment.json`,
		Args:              between(2, 3, "RUN or WAIT"),
		ValidArgsFunction: r.complete(latestRuns),
		RunE: func(cmd *cobra.Command, args []string) error {
			payload := ""
			if len(args) > 2 {
				payload = args[2]
			}
			return r.answerWait(cmd, args, payload, "ended", func(ctx context.Context, client *api.Client, id run.ID, wait string, payload json.RawMessage) error {
				return client.Signal(ctx, id, wait, payload)
			})
		},
	}, exitFailed, exitInvalid, exitUnreachable, exitInterrupted)
	r.add(cmd.Flags())
	return cmd
}

// userName is what the system calls whoever runs the program, empty when it does
// not know.
func userName() string {
	u, err := user.Current()
	if err != nil {
		return ""
	}
	return u.Username
}

// answerWait ends the wait that the arguments name, of the run that they select.
func (r *remote) answerWait(cmd *cobra.Command, args []string, input, said string,
	answer func(context.Context, *api.Client, run.ID, string, json.RawMessage) error) error {
	var payload json.RawMessage
	if input != "" {
		var err error
		if payload, err = r.readJSON(input); err != nil {
			return err
		}
	}
	wait := strings.TrimPrefix(args[1], flows.WaitPrefix)
	return r.use(cmd, func(ctx context.Context, client *api.Client) error {
		id, err := pickRun(ctx, client, args[0])
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
		r.say("wait %s of run %s is %s", wait, id, said)
		return nil
	})
}

// unknownWait says that a run has no such wait, and which it has.
func unknownWait(ctx context.Context, client *api.Client, id run.ID, wait string) error {
	var names []string
	if record, err := client.Get(ctx, id); err == nil {
		for _, t := range record.Tasks {
			if name, ok := strings.CutPrefix(t.Task, flows.WaitPrefix); ok {
				names = append(names, name)
			}
		}
	}
	return exitf(exitInvalid, "run %s has no wait %q%s", id, wait, suggest(wait, names))
}
