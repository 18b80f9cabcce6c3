// Package gobuild builds the programs and guests that tests need as files.
package gobuild

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

// Main is the TestMain of a package whose tests need built files: build makes them in
// a temporary directory, which Main removes at the end. Main runs the tests, checks
// that they leave no goroutine behind, and exits.
func Main(m *testing.M, build func(ctx context.Context, dir string) error) {
	dir, err := os.MkdirTemp("", "flowhost-test-")
	if err == nil {
		err = build(context.Background(), dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.RemoveAll(dir)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		os.RemoveAll(dir)
		os.Exit(code)
	}))
}

// ModuleCache returns a directory for XDG_CACHE_HOME, where the hosts of all tests keep
// the modules that they have compiled from one run of the tests to the next, as the go
// command does with packages. Tests that compile hostile modules use one of their own:
// what is cached is not measured.
func ModuleCache() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = os.TempDir()
	}
	return filepath.Join(dir, "flowhost-test")
}

// Flowhost returns the path of a flowhost binary: the given one, or, if that is
// empty, one that it builds from this tree in dir.
func Flowhost(ctx context.Context, given, dir string) (string, error) {
	if given != "" {
		return filepath.Abs(given)
	}
	out := filepath.Join(dir, "flowhost")
	return out, build(ctx, nil, "github.com/flowhost/flowhost/cmd/flowhost", out)
}

// Guest builds the plugin in dir, which is relative to the test's directory, as the
// file out: a command if the name of dir ends in -cmd, otherwise a reactor, as in the
// Makefile.
func Guest(ctx context.Context, dir, out string) error {
	flags := []string{"-ldflags=-s -w"}
	if !strings.HasSuffix(dir, "-cmd") {
		flags = append(flags, "-buildmode=c-shared")
	}
	return build(ctx, flags, "./"+filepath.ToSlash(dir), out, "GOOS=wasip1", "GOARCH=wasm")
}

func build(ctx context.Context, flags []string, pkg, out string, env ...string) error {
	args := append([]string{"build", "-trimpath", "-o", out}, flags...)
	cmd := exec.CommandContext(ctx, "go", append(args, pkg)...)
	cmd.Env = append(os.Environ(), env...)
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s: %w\n%s", pkg, err, output)
	}
	return nil
}
