package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

func versionCommand(a *app) *cobra.Command {
	var asJSON bool
	cmd := exits(&cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Example: `  flowhost version
  flowhost version --json`,
		Args: between(0, 0, ""),
		RunE: func(*cobra.Command, []string) error {
			b := thisBuild()
			if asJSON {
				return a.printJSON(b)
			}
			fmt.Fprintf(a.out, "flowhost %s (%s, %s, wazero %s, nats-server %s)\n", b.Version, b.Go, b.Platform, b.Wazero, b.NATS)
			return nil
		},
	})
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
