package main

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/flowhost/flowhost/cmd/flowhost/internal/cli"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/flowfiles"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/graph"
	"github.com/flowhost/flowhost/flows"
)

func graphCommand(a *cli.App) *cobra.Command {
	var files flowfiles.Flags
	var name, format string
	cmd := cli.Exits(&cobra.Command{
		Use:   "graph PATH",
		Short: "Show the dependencies of tasks",
		Long: `Shows the graphs of the flows in PATH, a flow file or a directory. The plugins need
not be built. Groups are drawn around their members, with their mode; a task with
for_each is marked (each). With --format json, "groups" lists the groups of a flow,
each with its members, and "after" names groups as group.NAME.`,
		Example: `  flowhost graph orders.hcl
  flowhost graph flows/ --flow orders --format mermaid
  flowhost graph orders.hcl --format dot | dot -Tsvg > orders.svg`,
		Args: cli.Between(1, 1, "PATH"),
		RunE: func(cmd *cobra.Command, paths []string) error {
			return drawGraphs(a, cmd, paths, files, name, format)
		},
	}, cli.ExitInvalid)
	files.AddFlags(cmd.Flags())
	cmd.Flags().StringVar(&name, "flow", "", "show only the flow of this `NAME`")
	cmd.Flags().StringVar(&format, "format", "text", "`FORMAT` of the output: text, mermaid, dot or json")
	return cmd
}

func drawGraphs(a *cli.App, cmd *cobra.Command, paths []string, files flowfiles.Flags, name, format string) error {
	formats := map[string]func(io.Writer, []*flows.Flow){"text": graph.Text, "mermaid": graph.Mermaid, "dot": graph.DOT}
	if formats[format] == nil && format != "json" {
		return cli.Usage(cmd, "--format %q: text, mermaid, dot or json is expected", format)
	}
	options, err := files.Allowed(cmd, a, paths[0], nil)
	if err != nil {
		return err
	}
	set, err := flowfiles.Load(cmd.Context(), a, paths, options)
	if err != nil {
		return err
	}
	chosen := set.Flows
	if name != "" {
		f, err := flowfiles.Pick(cmd, set, name)
		if err != nil {
			return err
		}
		chosen = []*flows.Flow{f}
	}
	if format == "json" {
		return a.PrintJSON(graph.JSON(chosen))
	}
	formats[format](a.Out, chosen)
	return nil
}
