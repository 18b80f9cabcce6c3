package standard

import (
	"context"
	"errors"
	"io/fs"
	"strings"

	"github.com/flowhost/flowhost/cmd/flowhost/internal/cli"
	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/host"
	"github.com/flowhost/flowhost/plugins/std"
	"github.com/flowhost/flowhost/run"
)

// Signature is that of a module's file or of a standard plugin, of which part is the name in its
// module; it is empty for a file.
func Signature(ctx context.Context, h *host.Host, name string) (s run.Signature, part string, err error) {
	part, standard := strings.CutPrefix(name, flows.StandardPrefix)
	if !standard {
		s, err = h.Signature(ctx, name)
		return s, "", err
	}
	s, err = Plugins(host.Catalog{Host: h, Compile: true}).Signature(ctx, part)
	if errors.Is(err, fs.ErrNotExist) {
		return s, "", unknown(name)
	}
	return flows.PartOf(s, part), part, err
}

// Inspect inspects a module's file or a standard plugin.
func Inspect(ctx context.Context, h *host.Host, name string) (*host.Inspection, error) {
	part, standard := strings.CutPrefix(name, flows.StandardPrefix)
	if !standard {
		return h.Inspect(ctx, name)
	}
	module, ok := std.Find(part)
	if !ok {
		return nil, unknown(name)
	}
	binary, err := module.Open()
	if err != nil {
		return nil, err
	}
	found, err := h.InspectEmbedded(ctx, name, binary)
	if err != nil {
		return nil, err
	}
	found.Signature = flows.PartOf(found.Signature, part)
	if found.Manifest != nil {
		own := *found.Manifest
		own.Functions = nil
		for _, f := range found.Manifest.Functions {
			if name, ok := strings.CutPrefix(f.Name, part+"."); ok {
				f.Name = name
				own.Functions = append(own.Functions, f)
			}
		}
		found.Manifest = &own
	}
	return found, nil
}

func unknown(name string) error {
	var names []string
	for _, n := range std.Names() {
		names = append(names, flows.StandardPrefix+n)
	}
	return cli.Exitf(cli.ExitInvalid, "there is no standard plugin %q%s", name, cli.Suggest(name, names))
}
