package main

import "github.com/spf13/cobra"

func (a *app) pluginCommand() *cobra.Command {
	cmd := a.group(&cobra.Command{
		Use:   "plugin",
		Short: "Look at plugins and try them out",
		Example: `  flowhost plugin inspect greet.wasm
  flowhost plugin call greet.wasm greet '{"name":"world"}'`,
	})
	cmd.AddCommand(a.pluginInspectCommand(), a.pluginCallCommand())
	return cmd
}
