package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/rogpeppe/go-internal/diff"
	"github.com/spf13/cobra"

	"github.com/flowhost/flowhost/cmd/flowhost/internal/cli"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/outfile"
	"github.com/flowhost/flowhost/flows"
)

// formatter is fmt with its flags.
type formatter struct {
	*cli.App
	check, diff bool
	different   bool
	invalid     bool
}

func fmtCommand(a *cli.App) *cobra.Command {
	f := formatter{App: a}
	cmd := cli.Exits(&cobra.Command{
		Use:   "fmt [PATH...]",
		Short: "Format flow files",
		Long: `Rewrites *.hcl files in the canonical format and prints the names of the changed ones.
PATH is a file, a directory, which is searched recursively (default: the current one),
or - for stdin, which is formatted to stdout.`,
		Example: `  flowhost fmt
  flowhost fmt --check flows/        exit code 3 if a file is not formatted
  flowhost fmt --diff orders.hcl     show what would change
  flowhost fmt - < orders.hcl`,
		RunE: func(_ *cobra.Command, paths []string) error {
			if len(paths) == 0 {
				paths = []string{"."}
			}
			return f.formatAll(paths)
		},
	}, cli.ExitInvalid, cli.ExitDifference)
	cmd.Flags().BoolVar(&f.check, "check", false, "change nothing; exit code 3 if a file is not formatted")
	cmd.Flags().BoolVar(&f.diff, "diff", false, "change nothing; print the differences")
	return cmd
}

func (f *formatter) formatAll(paths []string) error {
	for _, path := range paths {
		if err := f.formatPath(path); err != nil {
			return cli.WithCode(cli.ExitInvalid, err)
		}
	}
	switch {
	case f.invalid:
		return cli.Quiet(cli.ExitInvalid)
	case f.check && f.different:
		return cli.Quiet(cli.ExitDifference)
	}
	return nil
}

func (f *formatter) formatPath(path string) error {
	if path == "-" {
		return f.formatStdin()
	}
	return filepath.WalkDir(path, func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && name != path && strings.HasPrefix(e.Name(), "."):
			return fs.SkipDir
		case e.IsDir(), name != path && (!e.Type().IsRegular() || !strings.HasSuffix(name, ".hcl")):
			return nil // the target of a link is formatted in its own place
		}
		return f.formatFile(name)
	})
}

func (f *formatter) formatStdin() error {
	source, err := cli.ReadAll(f.Stdin)
	if err != nil {
		return err
	}
	formatted, ok := f.format("stdin", source)
	if ok && !f.check && !f.diff {
		_, err = f.Out.Write(formatted)
	}
	return err
}

func (f *formatter) formatFile(name string) error {
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", name)
	}
	source, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	formatted, ok := f.format(name, source)
	if !ok || string(formatted) == string(source) {
		return nil
	}
	if !f.diff {
		fmt.Fprintln(f.Out, name)
	}
	if f.check || f.diff {
		return nil
	}
	return outfile.Replace(name, formatted)
}

// format formats one file and records the findings. It returns false for source that
// is not HCL.
func (f *formatter) format(name string, source []byte) ([]byte, bool) {
	formatted, diags := flows.Format(source, name)
	if diags.HasErrors() {
		f.invalid = true
		f.ShowDiagnostics(map[string]*hcl.File{name: {Bytes: source}}, diags)
		return nil, false
	}
	difference := diff.Diff(name, source, name+" (formatted)", formatted)
	f.different = f.different || difference != nil
	if f.diff {
		fmt.Fprintf(f.Out, "%s", difference)
	}
	return formatted, true
}
