package gobuild

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"time"

	"github.com/flowhost/flowhost/cmd/flowhost/internal/cli"
)

// goPackage is a package as go list prints it.
type goPackage struct {
	Dir        string
	ImportPath string
	Name       string
	Standard   bool     // part of the standard library
	DepOnly    bool     // only a dependency of the named package
	GoFiles    []string // that are built for wasm, names within Dir
}

// Plugin is a plugin in Go that can be built.
type Plugin struct {
	dir     string
	Name    string // that go build would give the program
	reactor bool   // it exports functions, by itself or with the SDK
}

// Find inspects the Go package in a directory.
func Find(ctx context.Context, a *cli.App, dir string) (*Plugin, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(files) == 0 {
		return nil, cli.Exitf(cli.ExitInvalid, "%s: no Go files: pass the directory of a plugin in Go, or a .wasm file", dir)
	}
	listed, err := goTool(ctx, a, dir, "list", "-deps", "-json=Dir,ImportPath,Name,Standard,DepOnly,GoFiles", ".")
	if err != nil {
		return nil, err
	}
	p := &Plugin{dir: dir}
	packages := json.NewDecoder(bytes.NewReader(listed))
	for packages.More() {
		var found goPackage
		if err := packages.Decode(&found); err != nil {
			return nil, err
		}
		if !found.DepOnly {
			if found.Name != "main" {
				return nil, cli.Exitf(cli.ExitInvalid, "%s contains package %s: a plugin is a program, package main", dir, found.Name)
			}
			p.Name = programName(found.ImportPath)
		}
		if !found.Standard {
			exports, err := found.exports()
			if err != nil {
				return nil, err
			}
			p.reactor = p.reactor || exports
		}
	}
	return p, nil
}

var majorVersion = regexp.MustCompile(`^v[1-9][0-9]*$`)

// programName is the name that go build gives the program of a package: the last
// element of its path that is no major version.
func programName(importPath string) string {
	if base := path.Base(importPath); !majorVersion.MatchString(base) || path.Dir(importPath) == "." {
		return base
	}
	return path.Base(path.Dir(importPath))
}

// exports reports whether the package exports functions to the host.
func (p *goPackage) exports() (bool, error) {
	for _, name := range p.GoFiles {
		text, err := os.ReadFile(filepath.Join(p.Dir, name))
		if err != nil {
			return false, err
		}
		for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
			if bytes.HasPrefix(lines.Bytes(), []byte("//go:wasmexport ")) {
				return true, nil
			}
		}
	}
	return false, nil
}

// Build writes the plugin's module. The same source, dependencies and toolchain
// give the same bytes, whatever the directory and the state of its repository.
func (p *Plugin) Build(ctx context.Context, a *cli.App, out string) error {
	args := []string{"build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", out}
	if p.reactor {
		args = append(args, "-buildmode=c-shared")
	}
	_, err := goTool(ctx, a, p.dir, append(args, ".")...)
	return err
}

// goTool runs the go command for wasm in a directory and returns its stdout. Its
// stderr is passed through.
func goTool(ctx context.Context, a *cli.App, dir string, args ...string) ([]byte, error) {
	tool, err := exec.LookPath("go")
	if err != nil {
		return nil, cli.Exitf(cli.ExitFailed, "building a plugin in Go requires the Go toolchain, and there is no go in PATH: see https://go.dev/dl")
	}
	cmd := exec.CommandContext(ctx, tool, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	cmd.Stderr = io.Writer(a.Errout)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // so that it ends its compilers
	cmd.WaitDelay = 5 * time.Second
	printed, err := cmd.Output()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.As(err, &exit):
		return nil, cli.Exitf(cli.ExitInvalid, "%s: go %s failed", dir, args[0])
	}
	return printed, err
}
