package hostile

import (
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/flowhost/flowhost/internal/crashtest"
	"github.com/flowhost/flowhost/internal/testkit/gobuild"
)

var (
	everything = flag.Bool("all", false, "run every attack in every size")
	only       = flag.String("only", "", "run the attacks whose names match this expression")
	program    = flag.String("program", "", "the flowhost binary to attack; default: built from this tree")
	tries      = flag.Int("tries", 3, "how often an attack is repeated before its effect on others counts as its fault")
)

// chosen reports whether the flags select an attack; by default those of the sample.
func chosen(name string, sample bool) bool {
	if *only != "" {
		match, err := regexp.MatchString(*only, name)
		return match || err != nil
	}
	return sample || *everything
}

// built is set by TestMain; it does not change afterwards.
var built struct {
	program crashtest.Program
	guests  string // directory of the modules
}

func TestMain(m *testing.M) {
	flag.Parse()
	gobuild.Main(m, build)
}

// build makes the program and the guests in dir.
func build(ctx context.Context, dir string) error {
	built.program = crashtest.Program{
		Cache: filepath.Join(dir, "cache"),
		Env:   []string{"GODEBUG=gctrace=1"}, // see [stage.pauses]
	}
	built.guests = filepath.Join(dir, "guests")
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		built.program.Path, err = gobuild.Flowhost(ctx, *program, dir)
		return err
	})
	for _, guest := range []string{"../e2e/testdata/guests/unruly", "testdata/guests/flood-cmd", "testdata/guests/door"} {
		g.Go(func() error {
			return gobuild.Guest(ctx, guest, filepath.Join(built.guests, filepath.Base(guest)+".wasm"))
		})
	}
	return errors.Join(g.Wait(), os.MkdirAll(built.program.Cache, 0o700))
}
