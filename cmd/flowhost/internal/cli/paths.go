package cli

import (
	"os"
	"path/filepath"
)

// Relative is a path relative to the working directory, if it is below that.
func Relative(path string) string {
	here, err := os.Getwd()
	if err != nil {
		return path
	}
	below, err := filepath.Rel(here, path)
	if err != nil || !filepath.IsLocal(below) {
		return path
	}
	return below
}
