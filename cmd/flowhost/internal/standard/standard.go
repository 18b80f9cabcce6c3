// Package standard finds plugins by the names that a user gives them: a module's file, or one of
// the standard plugins, which are in this program.
package standard

import (
	"context"
	"io/fs"

	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/host"
	"github.com/flowhost/flowhost/plugins/std"
	"github.com/flowhost/flowhost/run"
)

// Plugins is the standard plugins, whose modules the catalog takes out of this program.
func Plugins(catalog host.Catalog) flows.Standard {
	return flows.Standard{
		Names: std.Names(),
		Signature: func(ctx context.Context, name string) (run.Signature, error) {
			module, ok := std.Find(name)
			if !ok {
				return run.Signature{}, fs.ErrNotExist
			}
			return catalog.Embedded(ctx, module.Digest, module.Open)
		},
	}
}
