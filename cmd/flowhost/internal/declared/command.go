package declared

import (
	"github.com/spf13/cobra"

	"github.com/flowhost/flowhost/cmd/flowhost/internal/cli"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/render"
)

// ListCommand returns cmd as the command that lists what files and settings declare of one kind.
func ListCommand[T any](a *cli.App, kind string, of func(*Site) []T, columns *render.Columns, row func(T) []string, cmd *cobra.Command) *cobra.Command {
	files := Files{App: a}
	asJSON := false
	cmd.Use, cmd.Args = "list PATH...", cli.AtLeast(1, "PATH")
	cmd.RunE = func(cmd *cobra.Command, paths []string) error {
		site, err := files.Load(cmd, paths)
		if err != nil {
			return err
		}
		return render.List(a.Out, of(site), asJSON, columns, row)
	}
	cmd = cli.Exits(cmd, cli.ExitInvalid)
	files.AddFlags(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per line, for each "+kind)
	return cmd
}

// Complete completes in the shell the name of what is declared after a path.
func Complete[T any](files *Files, of func(*Site) []T, name func(T) string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return files.Names(cmd, args, func(s *Site) []string {
			var names []string
			for _, one := range of(s) {
				names = append(names, name(one))
			}
			return names
		})
	}
}
