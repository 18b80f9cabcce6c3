package main

import (
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/flowhost/flowhost/cmd/flowhost/internal/cli"
)

// TestHelp checks what all help texts have in common.
func TestHelp(t *testing.T) {
	t.Parallel()
	const width = 88 // columns that the texts keep to
	var check func(*cobra.Command)
	check = func(cmd *cobra.Command) {
		for line := range strings.Lines(cmd.Long) {
			if n := utf8.RuneCountInString(line); n > width {
				t.Errorf("%s: a line of %d columns: %s", cmd.CommandPath(), n, line)
			}
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if name, _ := pflag.UnquoteUsage(f); name != strings.ToUpper(name) {
				t.Errorf("%s --%s: the value is called %s, not after what it is", cmd.CommandPath(), f.Name, name)
			}
		})
		for _, c := range cmd.Commands() {
			if c.Name() != "help" && c.Name() != "completion" { // cobra's own
				check(c)
			}
		}
	}
	check(rootCommand(cli.NewApp(nil, io.Discard, io.Discard)))
}
