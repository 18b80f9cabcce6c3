package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"

	"github.com/flowhost/flowhost/internal/testkit/gobuild"
)

// root is the top of the tree, seen from this package.
const root = "../.."

// built is what TestMain made; it is not changed afterwards.
var built struct {
	program  string // the flowhost binary
	examples string // folder with a copy of each example, its plugins built
	guests   string // folder with the modules of testdata/guests
	cache    string // of compiled modules, for all processes of the tests
}

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "flowhost-e2e-")
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

// build makes the program and all modules below dir.
func build(ctx context.Context, dir string) error {
	built.program = filepath.Join(dir, "flowhost")
	built.examples = filepath.Join(dir, "examples")
	built.guests = filepath.Join(dir, "guests")
	built.cache = filepath.Join(dir, "cache")

	plugins, err := filepath.Glob(filepath.Join(root, "examples/*/plugins/*"))
	if err != nil {
		return err
	}
	guests, err := filepath.Glob("testdata/guests/*")
	if err != nil {
		return err
	}
	if len(plugins) == 0 || len(guests) == 0 {
		return errors.New("there are no plugins to build: the tree is not complete")
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(2)
	g.Go(func() error { return gobuild.Program(ctx, filepath.Join(root, "cmd/flowhost"), built.program) })
	for _, p := range plugins {
		example := filepath.Base(filepath.Dir(filepath.Dir(p)))
		g.Go(func() error { return buildGuest(ctx, p, filepath.Join(built.examples, example)) })
	}
	for _, p := range guests {
		g.Go(func() error { return buildGuest(ctx, p, built.guests) })
	}
	return errors.Join(g.Wait(), copyExamples())
}

// buildGuest makes <dir>/<name>.wasm of a plugin's folder.
func buildGuest(ctx context.Context, folder, dir string) error {
	return gobuild.Guest(ctx, folder, filepath.Join(dir, filepath.Base(folder)+".wasm"))
}

// copyExamples puts flow files and data beside the built plugins.
func copyExamples() error {
	files, err := filepath.Glob(filepath.Join(root, "examples/*/*"))
	if err != nil {
		return err
	}
	for _, from := range files {
		info, err := os.Stat(from)
		if err != nil {
			return err
		}
		example := filepath.Base(filepath.Dir(from))
		state := strings.HasPrefix(example, ".") // of a host that was started there
		if info.IsDir() || state || filepath.Ext(from) == ".wasm" {
			continue
		}
		if err := copyFile(from, filepath.Join(built.examples, example, filepath.Base(from))); err != nil {
			return err
		}
	}
	return nil
}

func copyFile(from, to string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, content, 0o600)
}
