package settings

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/hashicorp/hcl/v2"

	"github.com/flowhost/flowhost/cmd/flowhost/internal/cli"
)

// FileName is the name of the settings file in a directory of flows.
const FileName = "flowhost.hcl"

// InvalidError reports a settings file with errors.
type InvalidError struct {
	Files map[string]*hcl.File // sources of the diagnostics
	Diags hcl.Diagnostics
}

func (e *InvalidError) Error() string { return e.Diags.Error() }

// File is the settings file of a host: the named one, or else the one in the directory of
// flows, which need not exist.
func File(named, flowPath string) string {
	if named != "" {
		return named
	}
	return filepath.Join(DirOf(flowPath), FileName)
}

// Load reads the file that [File] gives. It returns an *InvalidError for one with errors,
// with the settings that have none.
func Load(named, flowPath string) (Settings, error) {
	name := File(named, flowPath)
	source, err := os.ReadFile(name)
	switch {
	case named == "" && errors.Is(err, fs.ErrNotExist):
		return Settings{}, nil
	case err != nil:
		return Settings{}, cli.Exitf(cli.ExitInvalid, "settings: %w", err)
	}
	s, diags := decodeSettings(source, name)
	if diags.HasErrors() {
		return s, &InvalidError{Files: map[string]*hcl.File{name: {Bytes: source}}, Diags: diags}
	}
	return s, nil
}

// Read is Load for a command: it shows the errors of the file.
func Read(a *cli.App, named, flowPath string) (Settings, error) {
	s, err := Load(named, flowPath)
	return s, Show(a, err)
}

// Show shows the errors of a settings file, and returns any other error.
func Show(a *cli.App, err error) error {
	invalid := (*InvalidError)(nil)
	if !errors.As(err, &invalid) {
		return err
	}
	a.ShowDiagnostics(invalid.Files, invalid.Diags)
	return cli.Quiet(cli.ExitInvalid)
}

// DirOf is a directory of flows, or the parent of a flow file.
func DirOf(path string) string {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return path
	}
	return filepath.Dir(path)
}
