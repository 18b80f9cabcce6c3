// Package gobuild builds the program and the guests of tests that need them as
// files.
package gobuild

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Program builds the command of a directory, which is relative to the test's own,
// as the file out.
func Program(ctx context.Context, dir, out string) error { return build(ctx, nil, dir, out) }

// Guest builds the plugin of a directory as the file out: a command when the
// directory's name ends in -cmd, else a reactor, as the Makefile has it.
func Guest(ctx context.Context, dir, out string) error {
	flags := []string{"-ldflags=-s -w"}
	if !strings.HasSuffix(dir, "-cmd") {
		flags = append(flags, "-buildmode=c-shared")
	}
	return build(ctx, flags, dir, out, "GOOS=wasip1", "GOARCH=wasm")
}

func build(ctx context.Context, flags []string, dir, out string, env ...string) error {
	args := append([]string{"build", "-trimpath", "-o", out}, flags...)
	cmd := exec.CommandContext(ctx, "go", append(args, "./"+filepath.ToSlash(dir))...)
	cmd.Env = append(os.Environ(), env...)
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s: %w\n%s", dir, err, text)
	}
	return nil
}
