package main

import (
	"context"
	"encoding/json"
	"os/user"

	"github.com/spf13/cobra"

	"github.com/flowhost/flowhost/bus/api"
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
		Short: "Approve or refuse what a run waits for",
		Long: `Decides a wait for an approval: the run continues or, with --deny, the wait fails.
The command returns once the decision is durable. The decision is recorded with the
name of the user who runs the command; the host does not verify that name.

` + remote.SelectorHelp + ` 'flowhost show RUN' shows what it waits for.`,
		Example: `  flowhost approve order@latest manager
  flowhost approve order@latest manager --payload '{"discount":5}'
  flowhost approve order@latest manager --deny --reason "too expensive"`,
		Args:              cli.Between(2, 2, "RUN or WAIT"),
		ValidArgsFunction: r.Complete(remote.CompleteRuns),
		RunE: func(cmd *cobra.Command, args []string) error {
			decision := run.Approval{Approved: !deny, By: userName(), Reason: reason}
			done := "approved"
			if deny {
				done = "refused"
			}
			return answerWait(r, cmd, args, payload, done, func(ctx context.Context, client *api.Client, id run.ID, wait string, payload json.RawMessage) error {
				decision.Payload = payload
				return client.Approve(ctx, id, wait, decision)
			})
		},
	}, cli.ExitFailed, cli.ExitInvalid, cli.ExitUnreachable, cli.ExitInterrupted)
	flags := cmd.Flags()
	flags.BoolVar(&deny, "deny", false, "refuse it: the wait fails")
	flags.StringVar(&reason, "reason", "", "`TEXT` recorded with it")
	flags.StringVar(&payload, "payload", "", "what the flow sees as payload.payload: `JSON`, @FILE, or - for stdin")
	r.AddFlags(flags)
	return cmd
}

// userName is the name of the user who runs the program, empty if unknown.
func userName() string {
	u, err := user.Current()
	if err != nil {
		return ""
	}
	return u.Username
}
