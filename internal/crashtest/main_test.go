package crashtest_test

import (
	"context"
	"errors"
	"flag"
	"path/filepath"
	"testing"

	"github.com/flowhost/flowhost/internal/crashtest"
	"github.com/flowhost/flowhost/internal/testkit/gobuild"
)

// The Makefile targets set these.
var (
	kills   = flag.Int("kills", 0, "how often to kill the host; default: a few times")
	seed    = flag.Uint64("seed", 0, "of the kill points and the load; default: a random one")
	logFile = flag.String("log", "", "file to which the output of all processes is appended; default: none")
	program = flag.String("program", "", "the flowhost binary to test; default: built from this tree")
)

// built is set by TestMain; it does not change afterwards.
var built struct {
	program crashtest.Program
	module  string // the guest of the sites
	marks   string // the guest of [crashtest.Marks]
}

func TestMain(m *testing.M) {
	crashtest.ServeNATS()
	flag.Parse()
	gobuild.Main(m, build)
}

// build makes the program and the guest in dir.
func build(ctx context.Context, dir string) error {
	binary, err := gobuild.Flowhost(ctx, *program, dir)
	built.program = crashtest.Program{Path: binary, Cache: gobuild.ModuleCache(), Log: *logFile}
	built.module = filepath.Join(dir, "chores.wasm")
	built.marks = filepath.Join(dir, "marks.wasm")
	return errors.Join(err, gobuild.Guest(ctx, "testdata/guests/chores", built.module), gobuild.Guest(ctx, "testdata/guests/marks", built.marks))
}
