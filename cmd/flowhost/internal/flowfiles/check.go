package flowfiles

import (
	"context"
	"errors"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/flowhost/flowhost/cmd/flowhost/internal/cli"
	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/host"
	"github.com/flowhost/flowhost/run"
)

// informed is a catalog that has the signatures of most modules without reading them.
type informed interface {
	flows.Catalog
	Known(ctx context.Context, path string) (run.Signature, bool)
}

// Checked calls load once if all modules of the catalog but one are known. Otherwise it
// checks the others first, concurrently, and calls load again: a load asks for one module
// after the other. fail, if not nil, is called when modules cannot be stored: the data directory is
// to blame then, and not each plugin.
func Checked(ctx context.Context, options flows.Options, fail func(error), load func(flows.Options)) {
	all, ok := options.Catalog.(informed)
	if !ok {
		load(options)
		return
	}
	c := &checkedCatalog{informed: all, found: map[string]checked{}, fail: fail}
	options.Catalog = c
	load(options)
	if len(c.unknown) == 0 {
		return
	}
	c.checkUnknown(ctx)
	load(options)
}

// checkedCatalog belongs to one goroutine.
type checkedCatalog struct {
	informed
	found   map[string]checked // by path
	first   bool               // the first unknown module was checked, while the load waited
	unknown []string           // paths of the others
	fail    func(error)
}

type checked struct {
	signature run.Signature
	err       error
}

var errUnchecked = errors.New("the module is not checked yet")

// Signature implements flows.Catalog.
func (c *checkedCatalog) Signature(ctx context.Context, path string) (run.Signature, error) {
	found, ok := c.found[path]
	if !ok {
		found.signature, ok = c.Known(ctx, path)
		switch {
		case ok:
		case !c.first:
			c.first = true
			found = c.check(ctx, path)
			c.report(found)
		default:
			found.err = errUnchecked
			c.unknown = append(c.unknown, path)
		}
		c.found[path] = found
	}
	return found.signature, found.err
}

// checkUnknown checks the modules that were asked for.
func (c *checkedCatalog) checkUnknown(ctx context.Context) {
	results := make([]checked, len(c.unknown))
	var checks errgroup.Group
	checks.SetLimit(max(runtime.GOMAXPROCS(0), 2)) // a check may wait for a child that compiles
	for i, path := range c.unknown {
		checks.Go(func() error {
			results[i] = c.check(ctx, path)
			return nil
		})
	}
	_ = checks.Wait() // each result has its error
	for i, path := range c.unknown {
		c.found[path] = results[i]
		c.report(results[i])
	}
	c.unknown = nil
}

func (c *checkedCatalog) check(ctx context.Context, path string) (found checked) {
	found.signature, found.err = c.informed.Signature(ctx, path)
	return found
}

// report reports a module that cannot be stored.
func (c *checkedCatalog) report(found checked) {
	if fault := (*host.StorageError)(nil); c.fail != nil && errors.As(found.err, &fault) {
		c.fail(cli.WithCode(cli.ExitInvalid, fault.Err))
	}
}
