package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/flowhost/flowhost/cmd/flowhost/internal/buildinfo"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/cli"
)

func versionCommand(a *cli.App) *cobra.Command {
	var asJSON bool
	cmd := cli.Exits(&cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Example: `  flowhost version
  flowhost version --json`,
		Args: cli.Between(0, 0, ""),
		RunE: func(*cobra.Command, []string) error {
			b := buildinfo.This()
			if asJSON {
				return a.PrintJSON(b)
			}
			fmt.Fprintf(a.Out, "flowhost %s (%s, %s, wazero %s, nats-server %s)\n", b.Version, b.Go, b.Platform, b.Wazero, b.NATS)
			return nil
		},
	})
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
