package main

import (
	"github.com/spf13/cobra"

	"github.com/flowhost/flowhost/cmd/flowhost/internal/cli"
)

func pluginCommand(a *cli.App) *cobra.Command {
	cmd := group(a, &cobra.Command{
		Use:   "plugin",
		Short: "Build, inspect and call plugins",
		Example: `  flowhost plugin build
  flowhost plugin inspect greet.wasm
  flowhost plugin call greet.wasm greet '{"name":"world"}'`,
	})
	cmd.AddCommand(pluginBuildCommand(a), pluginInspectCommand(a), pluginCallCommand(a))
	return cmd
}
