package e2e

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/flowhost/flowhost/internal/testkit/gobuild"
)

// root is the top of the tree, seen from this package.
const root = "../.."

// built is set by TestMain; it does not change afterwards.
var built struct {
	program  string // the flowhost binary
	examples string // directory with a copy of each example, its plugins built
	guests   string // directory with the modules of testdata/guests
	cache    string // of compiled modules, for all processes of the tests
}

func TestMain(m *testing.M) { gobuild.Main(m, build) }

// build makes the program and all modules in dir.
func build(ctx context.Context, dir string) error {
	built.examples = filepath.Join(dir, "examples")
	built.guests = filepath.Join(dir, "guests")
	built.cache = gobuild.ModuleCache()

	plugins, err := filepath.Glob(filepath.Join(root, "examples/*/plugins/*"))
	if err != nil {
		return err
	}
	guests, err := filepath.Glob("testdata/guests/*")
	if err != nil {
		return err
	}
	if len(plugins) == 0 || len(guests) == 0 {
		return errors.New("no plugins to build: the tree is incomplete")
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(2)
	g.Go(func() (err error) {
		built.program, err = gobuild.Flowhost(ctx, "", dir)
		return err
	})
	for _, p := range plugins {
		example := filepath.Base(filepath.Dir(filepath.Dir(p)))
		g.Go(func() error { return buildGuest(ctx, p, filepath.Join(built.examples, example)) })
	}
	for _, p := range guests {
		g.Go(func() error { return buildGuest(ctx, p, built.guests) })
	}
	return errors.Join(g.Wait(), copyExamples())
}

// buildGuest builds the plugin in from as <dir>/<name>.wasm.
func buildGuest(ctx context.Context, from, dir string) error {
	return gobuild.Guest(ctx, from, filepath.Join(dir, filepath.Base(from)+".wasm"))
}

// copyExamples copies flow files and data next to the built plugins.
func copyExamples() error {
	files, err := filepath.Glob(filepath.Join(root, "examples/*/*"))
	if err != nil {
		return err
	}
	if err := copyFile(filepath.Join(root, "examples/flowhost.hcl"), filepath.Join(built.examples, "flowhost.hcl")); err != nil {
		return err
	}
	for _, from := range files {
		info, err := os.Stat(from)
		if err != nil {
			return err
		}
		example := filepath.Base(filepath.Dir(from))
		state := strings.HasPrefix(example, ".") // data of a host that ran in the tree
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
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	return os.WriteFile(to, content, 0o600)
}
