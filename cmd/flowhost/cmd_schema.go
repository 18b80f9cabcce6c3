package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/flowhost/flowhost/cmd/flowhost/internal/cli"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/render"
	"github.com/flowhost/flowhost/flows"
)

func schemaCommand(a *cli.App) *cobra.Command {
	var asJSON bool
	cmd := cli.Exits(&cobra.Command{
		Use:   "schema",
		Short: "List the blocks and arguments of the flow language",
		Long: `Lists the blocks of the flow language with their arguments: type, phase, default and
meaning; first those of flow files, then those of test files. The phase determines the
values that an argument may use: values known at load, of a firing trigger, or of a
run. Keywords reserved for a later version appear only in the JSON output, marked as
such.`,
		Example: `  flowhost schema
  flowhost schema --json | jq '.bodies[] | select(.name == "task").arguments[].name'`,
		Args: cli.Between(0, 0, ""),
		RunE: func(*cobra.Command, []string) error {
			if asJSON {
				return a.PrintJSON(flows.Schema())
			}
			listWords(a, flows.Schema())
			return nil
		},
	})
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func listWords(a *cli.App, l *flows.Language) {
	for i, body := range slices.Concat(l.Bodies, l.TestBodies) {
		if i > 0 {
			fmt.Fprintln(a.Out)
		}
		fmt.Fprintln(a.Out, a.Out.Paint(render.Bold, body.Name))
		var rows [][]string
		for _, arg := range body.Arguments {
			if !arg.Later {
				rows = append(rows, argumentRow(arg))
			}
		}
		for _, block := range body.Blocks {
			if !block.Later {
				rows = append(rows, blockRows(block)...)
			}
		}
		a.Out.Table(rows, -1)
	}
}

func argumentRow(arg flows.Argument) []string {
	kind, about, without := arg.Type, arg.About, arg.Default
	if arg.Bounds != "" {
		kind += ", " + arg.Bounds
	}
	if len(arg.OneOf) > 0 {
		about += `: "` + strings.Join(arg.OneOf, `", "`) + `"`
	}
	if arg.Required {
		without = "required"
	}
	return []string{"  " + arg.Name + " =", kind, arg.Phase, without, about}
}

func blockRows(block flows.Block) [][]string {
	often := "any number"
	if block.Once {
		often = "once"
	}
	row := func(label string) []string {
		head := "  " + block.Name
		for i, placeholder := range block.Labels {
			if i > 0 {
				label = ""
			}
			head += fmt.Sprintf(" %q", cmp.Or(label, placeholder))
		}
		return []string{head + " {}", often, "", "", block.About}
	}
	var rows [][]string
	for _, kind := range block.Kinds {
		if !kind.Later {
			rows = append(rows, row(kind.Label))
		}
	}
	if rows == nil {
		rows = append(rows, row(""))
	}
	return rows
}
