package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/flowhost/flowhost/cmd/flowhost/internal/cli"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/declared"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/render"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/serve"
)

func connectionCommand(a *cli.App) *cobra.Command {
	cmd := group(a, &cobra.Command{
		Use:   "connection",
		Short: "List connections and test one",
		Long: `Lists and tests the connections that flow files and the settings of the host declare.
The commands need no running host.`,
		Example: `  flowhost connection list flows/
  flowhost connection test flows/ warehouse`,
	})
	cmd.AddCommand(connectionListCommand(a), connectionTestCommand(a))
	return cmd
}

func connectionListCommand(a *cli.App) *cobra.Command {
	columns := &render.Columns{Names: []string{"CONNECTION", "TYPE", "TARGET", "ACCESS", "DECLARED", "FLOWS"}, States: -1, Narrow: []int{3, 4}}
	return declared.ListCommand(a, "connection", (*declared.Site).Connections, columns, connectionRow, &cobra.Command{
		Short: "List connections and the flows to which they are granted",
		Long: `Lists the connections of flow files and of the settings beside them: type, target,
where they are declared, and the flows to which they are granted. Credentials are
never shown.`,
		Example: `  flowhost connection list flows/
  flowhost connection list flows/ --json | jq 'select(.flows == [])'`,
	})
}

func connectionRow(c declared.Connection) []string {
	return []string{c.FullName(), c.Type, render.Printable(c.Target), c.Access, c.Declared, strings.Join(c.Flows, ", ")}
}

// connectionTest is connection test with its flags.
type connectionTest struct {
	declared.Files
	flow    string
	timeout time.Duration
	asJSON  bool
}

func connectionTestCommand(a *cli.App) *cobra.Command {
	t := &connectionTest{Files: declared.Files{App: a}}
	cmd := cli.Exits(&cobra.Command{
		Use:   "test PATH... NAME",
		Short: "Try a connection and report what is wrong with it",
		Long: `Connects as the host would, with the secrets, addresses and bounds of these files:
http requests the base URL with its credentials, databases are asked for one row, mail
servers get a login and no mail. Nothing is changed.

It reports a secret that cannot be read, a name that does not resolve, an address that
is refused and the line that allows it, a certificate that is not accepted, credentials
that are refused, a database that does not exist.

The secrets are read here: run the command where the host runs, with its environment.`,
		Example: `  flowhost connection test flows/ warehouse
  flowhost connection test flows/ github --flow billing/sync --timeout 30s
  flowhost connection test flows/ mail --json | jq -r .problem`,
		Args:              cli.AtLeast(2, "PATH or NAME"),
		ValidArgsFunction: declared.Complete(&t.Files, (*declared.Site).Connections, declared.Connection.FullName),
		RunE:              func(cmd *cobra.Command, args []string) error { return t.run(cmd, args) },
	}, cli.ExitFailed, cli.ExitInvalid, cli.ExitInterrupted)
	flags := cmd.Flags()
	t.AddFlags(flags)
	flags.StringVar(&t.flow, "flow", "", "`NAME` of the flow as which it is tried; default: the first to which it is granted")
	flags.DurationVar(&t.timeout, "timeout", 10*time.Second, "`DURATION` to wait for the other side")
	flags.BoolVar(&t.asJSON, "json", false, "print the result as one JSON object")
	return cmd
}

func (t *connectionTest) run(cmd *cobra.Command, args []string) error {
	paths, name := args[:len(args)-1], args[len(args)-1]
	if t.timeout <= 0 {
		return cli.Usage(cmd, "--timeout %s: a positive duration is expected", t.timeout)
	}
	site, err := t.Load(cmd, paths)
	if err != nil {
		return err
	}
	flow, found, err := t.pick(cmd, site, name)
	if err != nil {
		return err
	}
	soft, _, stopListening := cli.ListenSignals(cmd.Context())
	defer stopListening()
	return site.Use(soft, func(ctx context.Context, outside *serve.Outside) error {
		timed, cancel := context.WithTimeout(ctx, t.timeout)
		defer cancel()
		result := outside.Test(timed, flow, found.Name)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return t.report(&result)
	})
}

// pick is the connection of a name, with or without the directory that the list shows before
// it, and the flow as which it is tried.
func (t *connectionTest) pick(cmd *cobra.Command, site *declared.Site, name string) (string, *declared.Connection, error) {
	var names, places []string
	var found declared.Connection
	for _, c := range site.Connections() {
		names = append(names, c.FullName())
		if name == c.Name || name == c.FullName() {
			found = c
			places = append(places, c.Declared)
		}
	}
	switch {
	case len(places) == 0:
		return "", nil, cli.Exitf(cli.ExitInvalid, "the files declare no connection %q%s", name, cli.Suggest(name, names))
	case t.flow != "" && site.Flow(t.flow) == nil:
		return "", nil, cli.Usage(cmd, "--flow %s: the files declare no such flow", t.flow)
	case t.flow != "" && site.Connection(t.flow, found.Name) == nil:
		return "", nil, cli.Exitf(cli.ExitInvalid, "flow %s does not see connection %q, which is declared at %s", t.flow, name, places[0])
	case t.flow != "":
		return t.flow, &found, nil
	case len(places) > 1:
		return "", nil, cli.Exitf(cli.ExitInvalid, "connection %q is declared at %s: write it with its directory, as \"flowhost connection list\" shows it, or name a flow with --flow", name, strings.Join(places, " and "))
	}
	return found.Flow(), &found, nil
}

// problemWords are the problems of connections for people.
var problemWords = map[string]string{
	"declaration": "its declaration is wrong",
	"operator":    "the operator does not allow it",
	"secret":      "a secret cannot be read",
	"name":        "its name does not resolve",
	"address":     "its address is refused",
	"unreachable": "it cannot be reached",
	"tls":         "TLS failed",
	"credentials": "the credentials are refused",
	"database":    "the database is missing",
	"timeout":     "no answer in time",
	"refused":     "the server refused it",
}

func (t *connectionTest) report(found *serve.Probe) error {
	if t.asJSON {
		if err := t.App.PrintJSON(found); err != nil {
			return err
		}
		if !found.Works {
			return cli.Quiet(cli.ExitFailed)
		}
		return nil
	}
	if found.Works {
		_, err := fmt.Fprintf(t.App.Out, "connection %s works: %s, in %.0f ms\n", found.Connection, render.Printable(found.Reached), found.TookMS)
		return err
	}
	text := fmt.Sprintf("connection %s does not work: %s\n%s", found.Connection, problemWords[found.Problem], render.Printable(found.Message))
	if found.Add != "" {
		text += "\nadd " + found.Add
	}
	return cli.Exitf(cli.ExitFailed, "%s", text)
}
