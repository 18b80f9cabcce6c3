package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

// usage is an error of the person who called the command.
func usage(cmd *cobra.Command, format string, args ...any) error {
	return exitf(exitInvalid, "%w\n'%s --help' shows how it is used", fmt.Errorf(format, args...), cmd.CommandPath())
}

// atLeast and between check the number of arguments.
func atLeast(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < n {
			return usage(cmd, "%s is missing", what)
		}
		return nil
	}
}

func between(low, high int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > high {
			return usage(cmd, "%q is one argument too many", args[high])
		}
		return atLeast(low, what)(cmd, args)
	}
}
