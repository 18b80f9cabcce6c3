package main

import "github.com/spf13/cobra"

func (a *app) pluginCommand() *cobra.Command {
	cmd := a.group(&cobra.Command{
		Use:   "plugin",
		Short: "Build plugins, look at them and try them out",
		Example: `  flowhost plugin build
  flowhost plugin inspect greet.wasm
  flowhost plugin call greet.wasm greet '{"name":"world"}'`,
	})
	cmd.AddCommand(a.pluginBuildCommand(), a.pluginInspectCommand(), a.pluginCallCommand())
	return cmd
}
