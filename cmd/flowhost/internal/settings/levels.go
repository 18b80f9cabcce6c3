package settings

import (
	"log/slog"
	"slices"

	"github.com/spf13/cobra"

	"github.com/flowhost/flowhost/cmd/flowhost/internal/cli"
)

// CheckLevel rejects a flag's value that is not a level; an empty value is the default.
func CheckLevel(cmd *cobra.Command, flag, word string) error {
	levels := []string{"debug", "info", "warn", "error"}
	if word == "" || slices.Contains(levels, word) {
		return nil
	}
	return cli.Usage(cmd, "--%s %q is not a level%s", flag, word, cli.Suggest(word, levels))
}

// LevelOf is the level of a name, info by default.
func LevelOf(word string) slog.Level {
	switch word {
	case "debug":
		return slog.LevelDebug
	case "warn":
		return slog.LevelWarn
	case "error":
		return slog.LevelError
	}
	return slog.LevelInfo
}
