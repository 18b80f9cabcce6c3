package main

import (
	"fmt"
	"log/slog"

	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/cobra"

	"github.com/flowhost/flowhost/cmd/flowhost/internal/cli"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/flowfiles"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/render"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/serve"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/settings"
	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/host"
)

func validateCommand(a *cli.App) *cobra.Command {
	var files flowfiles.Flags
	var asJSON bool
	cmd := cli.Exits(&cobra.Command{
		Use:   "validate PATH...",
		Short: "Check flow files",
		Long: `Checks flow files and the plugins that they use, and reports all problems together.
PATH is a flow file, a directory, or a test file; tests in directories are checked with
the flows. No plugin is called.`,
		Example: `  flowhost validate flows/
  flowhost validate orders.hcl --var region=eu
  flowhost validate --json flows/ | jq .diagnostics`,
		Args: cli.AtLeast(1, "PATH"),
		RunE: func(cmd *cobra.Command, paths []string) error {
			return validateFiles(a, cmd, paths, files, asJSON)
		},
	}, cli.ExitInvalid)
	files.AddFlags(cmd.Flags())
	files.AddConfig(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the result as JSON, in the format of terraform validate")
	return cmd
}

func validateFiles(a *cli.App, cmd *cobra.Command, paths []string, files flowfiles.Flags, asJSON bool) error {
	ctx := cmd.Context()
	h, err := serve.NewHost(ctx, settings.Settings{}, nil, nil, a.Log(slog.LevelWarn))
	if err != nil {
		return err
	}
	defer serve.CloseHost(h)
	options, err := files.Allowed(cmd, a, paths[0], host.Catalog{Host: h, Compile: true, Discard: true})
	if err != nil {
		return err
	}
	var suite *flows.Suite
	var diags hcl.Diagnostics
	flowfiles.Checked(ctx, options, nil, func(options flows.Options) { suite, diags = flows.LoadTests(ctx, paths, options) })
	set := suite.Set
	if asJSON {
		if err := a.PrintJSON(flows.DiagnosticsJSON(diags, set.Files())); err != nil {
			return err
		}
	} else {
		a.ShowDiagnostics(set.Files(), diags)
	}
	if diags.HasErrors() {
		return cli.Quiet(cli.ExitInvalid)
	}
	if !asJSON {
		fmt.Fprintln(a.Out, summary(suite))
	}
	return nil
}

// summary counts the valid flows, files and tests.
func summary(suite *flows.Suite) string {
	if len(suite.Flows) == 0 {
		return "valid, and no flow is declared"
	}
	files := map[string]bool{}
	for _, f := range suite.Flows {
		files[f.Range.Filename] = true
	}
	what := fmt.Sprintf("%s in %s", render.Count(len(suite.Flows), "flow"), render.Count(len(files), "file"))
	verb := "are"
	if len(suite.Flows) == 1 {
		verb = "is"
	}
	if n := len(suite.Tests); n > 0 {
		what, verb = what+" and "+render.Count(n, "test"), "are"
	}
	return what + " " + verb + " valid"
}
