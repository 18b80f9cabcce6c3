package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/flowhost/flowhost/cmd/flowhost/internal/cli"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/declared"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/render"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/serve"
)

func secretCommand(a *cli.App) *cobra.Command {
	cmd := group(a, &cobra.Command{
		Use:   "secret",
		Short: "List secrets and check that they can be read",
		Long: `Lists and checks the secrets that flow files and the settings of the host declare. A
value is never shown. The commands need no running host.`,
		Example: `  flowhost secret list flows/
  flowhost secret check flows/
  flowhost secret check flows/ github_token`,
	})
	cmd.AddCommand(secretListCommand(a), secretCheckCommand(a))
	return cmd
}

func secretListCommand(a *cli.App) *cobra.Command {
	columns := &render.Columns{Names: []string{"SECRET", "SOURCE", "DECLARED", "CONNECTIONS", "HANDED TO"}, States: -1, Narrow: []int{2}}
	return declared.ListCommand(a, "secret", (*declared.Site).Secrets, columns, secretRow, &cobra.Command{
		Short: "List secrets, their sources and who uses them",
		Long: `Lists the secrets of flow files and of the settings beside them: where the value is
read from, where the secret is declared, the connections that use it, and the flows
whose tasks it is handed to. Nothing is read.`,
		Example: `  flowhost secret list flows/
  flowhost secret list flows/ --json | jq 'select(.flows != [])'`,
	})
}

func secretRow(x declared.Secret) []string {
	return []string{x.FullName(), render.Printable(x.Source), x.Declared, strings.Join(x.Connections, ", "), strings.Join(x.Flows, ", ")}
}

// secretCheck is secret check with its flags.
type secretCheck struct {
	declared.Files
	timeout time.Duration
	asJSON  bool
}

// checkedSecret is a secret with what its check has found.
type checkedSecret struct {
	Name     string `json:"secret"`
	Prefix   string `json:"prefix,omitempty"`
	Source   string `json:"source"`
	Declared string `json:"declared"`
	Resolves bool   `json:"resolves"`
	Reason   string `json:"reason,omitempty"` // why it does not
}

func secretCheckCommand(a *cli.App) *cobra.Command {
	c := &secretCheck{Files: declared.Files{App: a}}
	cmd := cli.Exits(&cobra.Command{
		Use:   "check PATH... [NAME]",
		Short: "Check that secrets can be read, without showing them",
		Long: `Reads the secrets of flow files and of the settings beside them, all or one, and states
which can be read and why the others cannot. Values are never shown. The last argument
is a NAME if no file or directory has it.

The secrets are read here: run the command where the host runs, with its environment.`,
		Example: `  flowhost secret check flows/
  flowhost secret check flows/ github_token
  flowhost secret check flows/ --json | jq 'select(.resolves | not)'`,
		Args:              cli.AtLeast(1, "PATH"),
		ValidArgsFunction: declared.Complete(&c.Files, (*declared.Site).Secrets, declared.Secret.FullName),
		RunE:              func(cmd *cobra.Command, args []string) error { return c.run(cmd, args) },
	}, cli.ExitFailed, cli.ExitInvalid, cli.ExitInterrupted)
	flags := cmd.Flags()
	c.AddFlags(flags)
	flags.DurationVar(&c.timeout, "timeout", 10*time.Second, "`DURATION` to wait for a source")
	flags.BoolVar(&c.asJSON, "json", false, "print one JSON object per line, for each secret")
	return cmd
}

func (c *secretCheck) run(cmd *cobra.Command, args []string) error {
	if c.timeout <= 0 {
		return cli.Usage(cmd, "--timeout %s: a positive duration is expected", c.timeout)
	}
	paths, name := args, ""
	if last := args[len(args)-1]; len(args) > 1 && isMissing(last) {
		paths, name = args[:len(args)-1], last
	}
	site, err := c.Load(cmd, paths)
	if err != nil {
		return err
	}
	all := site.Secrets()
	if name != "" {
		var names []string
		for _, x := range all {
			names = append(names, x.FullName())
		}
		if all = slices.DeleteFunc(all, func(x declared.Secret) bool { return name != x.Name && name != x.FullName() }); len(all) == 0 {
			return cli.Exitf(cli.ExitInvalid, "the files declare no secret %q%s", name, cli.Suggest(name, names))
		}
	}
	soft, _, stopListening := cli.ListenSignals(cmd.Context())
	defer stopListening()
	return site.Use(soft, func(ctx context.Context, outside *serve.Outside) error { return c.check(ctx, outside, all) })
}

// isMissing reports whether there is no file or directory of that name.
func isMissing(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// check prints what becomes of each secret.
func (c *secretCheck) check(ctx context.Context, outside *serve.Outside, all []declared.Secret) error {
	var found []checkedSecret
	failed := 0
	for _, x := range all {
		one := checkedSecret{Name: x.Name, Prefix: x.Prefix, Source: x.Source, Declared: x.Declared, Resolves: true}
		timed, cancel := context.WithTimeout(ctx, c.timeout)
		err := outside.CheckSecret(timed, x.Flow(), x.Name)
		cancel()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			one.Resolves, one.Reason = false, strings.TrimPrefix(err.Error(), "secret \""+x.Name+"\" cannot be read: ")
			failed++
		}
		found = append(found, one)
	}
	columns := &render.Columns{Names: []string{"SECRET", "SOURCE", "RESULT", "REASON"}, States: -1}
	if err := render.List(c.App.Out, found, c.asJSON, columns, checkedRow); err != nil {
		return err
	}
	if failed > 0 {
		return cli.Exitf(cli.ExitFailed, "%d of %s cannot be read", failed, render.Count(len(found), "secret"))
	}
	return nil
}

func checkedRow(x checkedSecret) []string {
	result := "resolves"
	if !x.Resolves {
		result = "fails"
	}
	return []string{x.Prefix + x.Name, render.Printable(x.Source), result, render.Printable(x.Reason)}
}
