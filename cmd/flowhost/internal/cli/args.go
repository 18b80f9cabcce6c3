package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

// Usage is an error of the person who called the command.
func Usage(cmd *cobra.Command, format string, args ...any) error {
	return Exitf(ExitInvalid, "%w\n'%s --help' shows how it is used", fmt.Errorf(format, args...), cmd.CommandPath())
}

// AtLeast and between check the number of arguments.
func AtLeast(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < n {
			return Usage(cmd, "%s is missing", what)
		}
		return nil
	}
}

// Between checks that the number of arguments is between low and high.
func Between(low, high int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > high {
			return Usage(cmd, "%q is one argument too many", args[high])
		}
		return AtLeast(low, what)(cmd, args)
	}
}
