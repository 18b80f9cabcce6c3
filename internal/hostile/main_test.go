package hostile

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"

	"github.com/flowhost/flowhost/internal/testkit/gobuild"
	"github.com/flowhost/flowhost/internal/torture"
)

var (
	everything = flag.Bool("all", false, "run every attack in every size")
	only       = flag.String("only", "", "run the attacks whose names match this expression")
	program    = flag.String("program", "", "the flowhost binary to attack; default: built from this tree")
	tries      = flag.Int("tries", 3, "how often an attack may stop others before that is its fault")
)

// chosen reports whether an attack is to be made: one of the sample, or one that was
// asked for.
func chosen(name string, sample bool) bool {
	if *only != "" {
		match, err := regexp.MatchString(*only, name)
		return match || err != nil
	}
	return sample || *everything
}

// built is what TestMain made; it is not changed afterwards.
var built struct {
	program torture.Program
	guests  string // directory of the modules
}

func TestMain(m *testing.M) {
	flag.Parse()
	dir, err := os.MkdirTemp("", "flowhost-hostile-")
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

// build makes the program and the guests below dir.
func build(ctx context.Context, dir string) error {
	built.program = torture.Program{
		Path: filepath.Join(dir, "flowhost"), Cache: filepath.Join(dir, "cache"),
		Env: []string{"GODEBUG=gctrace=1"}, // see [stage.pauses]
	}
	built.guests = filepath.Join(dir, "guests")
	g, ctx := errgroup.WithContext(ctx)
	if *program != "" {
		built.program.Path = *program
	} else {
		g.Go(func() error { return gobuild.Program(ctx, "../../cmd/flowhost", built.program.Path) })
	}
	for _, guest := range []string{"../e2e/testdata/guests/unruly", "testdata/guests/flood-cmd"} {
		g.Go(func() error {
			return gobuild.Guest(ctx, guest, filepath.Join(built.guests, filepath.Base(guest)+".wasm"))
		})
	}
	return errors.Join(g.Wait(), os.MkdirAll(built.program.Cache, 0o700))
}
