package torture_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/flowhost/flowhost/internal/testkit/gobuild"
	"github.com/flowhost/flowhost/internal/torture"
)

// What the targets of the Makefile say more than the names of tests.
var (
	kills   = flag.Int("kills", 0, "how often to kill the host; default: a few times")
	seed    = flag.Uint64("seed", 0, "of the moments and the load; default: a random one")
	logFile = flag.String("log", "", "file to which everything is added that the processes write; default: none")
	program = flag.String("program", "", "the flowhost binary to test; default: built from this tree")
)

// built is what TestMain made; it is not changed afterwards.
var built struct {
	program torture.Program
	module  string // the guest of the sites
}

func TestMain(m *testing.M) {
	torture.ServeNATS()
	flag.Parse()
	dir, err := os.MkdirTemp("", "flowhost-torture-")
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

// build makes the program and the guest below dir.
func build(ctx context.Context, dir string) error {
	built.program = torture.Program{Path: *program, Cache: filepath.Join(dir, "cache"), Log: *logFile}
	built.module = filepath.Join(dir, "chores.wasm")
	var err error
	if *program == "" {
		built.program.Path = filepath.Join(dir, "flowhost")
		err = gobuild.Program(ctx, "../../cmd/flowhost", built.program.Path)
	} else {
		built.program.Path, err = filepath.Abs(*program)
	}
	return errors.Join(err, os.Mkdir(built.program.Cache, 0o700),
		gobuild.Guest(ctx, "testdata/guests/chores", built.module))
}
