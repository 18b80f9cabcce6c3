package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// Exits sets the exit codes that a command's help lists, beside success.
func Exits(cmd *cobra.Command, codes ...int) *cobra.Command {
	cmd.Annotations = map[string]string{"exits": fmt.Sprint(append([]int{ExitOK}, codes...))}
	return cmd
}

// WriteHelp writes a command's help: its purpose, examples, then the rest.
func WriteHelp(w io.Writer, cmd *cobra.Command) {
	text := cmd.Long
	if text == "" {
		text = cmd.Short
	}
	fmt.Fprintln(w, strings.TrimSpace(text))
	if cmd.HasExample() {
		section(w, "Examples", strings.Trim(cmd.Example, "\n"))
	}
	section(w, "Usage", usageLines(cmd))
	section(w, "Commands", commandLines(cmd))
	section(w, "Flags", strings.TrimRight(cmd.LocalFlags().FlagUsages()+cmd.InheritedFlags().FlagUsages(), "\n"))
	section(w, "Exit codes", exitLines(cmd))
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(w, "\n'%s COMMAND --help' describes a command.\n", cmd.CommandPath())
	}
}

func section(w io.Writer, title, text string) {
	if text != "" {
		fmt.Fprintf(w, "\n%s:\n%s\n", title, text)
	}
}

func usageLines(cmd *cobra.Command) string {
	own, others := "  "+cmd.UseLine(), "  "+cmd.CommandPath()+" COMMAND"
	switch {
	case !cmd.HasAvailableSubCommands():
		return own
	case cmd.Use == cmd.Name(): // it takes no arguments itself
		return others
	}
	return own + "\n" + others
}

func commandLines(cmd *cobra.Command) string {
	var lines []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			lines = append(lines, fmt.Sprintf("  %-*s  %s", cmd.NamePadding(), c.Name(), c.Short))
		}
	}
	return strings.Join(lines, "\n")
}

// exitLines lists the codes that a command can end with, all of them for the
// program itself.
func exitLines(cmd *cobra.Command) string {
	noted, ok := cmd.Annotations["exits"]
	if !ok && cmd.HasParent() {
		return ""
	}
	codes := strings.Fields(strings.Trim(noted, "[]"))
	var lines []string
	for _, m := range exitMeanings {
		if !cmd.HasParent() || slices.Contains(codes, fmt.Sprint(m.code)) {
			lines = append(lines, fmt.Sprintf("  %3d  %s", m.code, m.meaning))
		}
	}
	return strings.Join(lines, "\n")
}
