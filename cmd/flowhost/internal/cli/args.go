package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

// Usage is an error in the arguments of a command.
func Usage(cmd *cobra.Command, format string, args ...any) error {
	return Exitf(ExitInvalid, "%w\n'%s --help' shows its usage", fmt.Errorf(format, args...), cmd.CommandPath())
}

// AtLeast checks that there are n arguments or more.
func AtLeast(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < n {
			return Usage(cmd, "missing argument: %s", what)
		}
		return nil
	}
}

// Between checks that the number of arguments is between low and high.
func Between(low, high int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > high {
			return Usage(cmd, "unexpected argument %q", args[high])
		}
		return AtLeast(low, what)(cmd, args)
	}
}
