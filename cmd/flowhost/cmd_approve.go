package main

import (
	"context"
	"encoding/json"
	"os/user"

	"github.com/spf13/cobra"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/cli"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/remote"
	"github.com/flowhost/flowhost/run"
)

func approveCommand(a *cli.App) *cobra.Command {
	r := &remote.Host{App: a}
	var deny bool
	var reason, payload string
	cmd := cli.Exits(&cobra.Command{
		Use:   "approve RUN WAIT",
		Short: "Approve what a run waits for, or refuse it",
		Long: `Decides a wait for an approval: the run goes on, or with --deny the wait fails.
The command returns when the decision is recorded. Who decided is recorded as the
name of the user who calls the command; nobody checks it.

` + remote.SelectorHelp + ` 'flowhost show RUN' tells what it waits for.`,
		Example: `  flowhost approve order@latest manager
  flowhost approve order@latest manager --payload '{"discount":5}'
  flowhost approve order@latest manager --deny --reason "too expensive"`,
		Args:              cli.Between(2, 2, "RUN or WAIT"),
		ValidArgsFunction: r.Complete(remote.CompleteRuns),
		RunE: func(cmd *cobra.Command, args []string) error {
			decision := run.Approval{Approved: !deny, By: userName(), Reason: reason}
			said := "approved"
			if deny {
				said = "refused"
			}
			return answerWait(r, cmd, args, payload, said, func(ctx context.Context, client *bus.Client, id run.ID, wait string, payload json.RawMessage) error {
				decision.Payload = payload
				return client.Approve(ctx, id, wait, decision)
			})
		},
	}, cli.ExitFailed, cli.ExitInvalid, cli.ExitUnreachable, cli.ExitInterrupted)
	flags := cmd.Flags()
	flags.BoolVar(&deny, "deny", false, "refuse it: the wait fails")
	flags.StringVar(&reason, "reason", "", "`TEXT` that is recorded with it")
	flags.StringVar(&payload, "payload", "", "what the flow sees as payload.payload: `JSON`, @FILE, or - for stdin")
	r.AddFlags(flags)
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
