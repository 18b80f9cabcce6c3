package flowfiles

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/flowhost/flowhost/cmd/flowhost/internal/cli"
	"github.com/flowhost/flowhost/flows"
)

// ParseParams reads the values of --param for a flow that was loaded.
func ParseParams(cmd *cobra.Command, f *flows.Flow, args []string) (map[string]json.RawMessage, error) {
	names := make([]string, len(f.Params))
	for i, p := range f.Params {
		names[i] = p.Name
	}
	return ReadParams(cmd, f.Name, names, args, func(i int, text string) (json.RawMessage, error) { return f.Params[i].Parse(text) })
}

// ReadParams reads arguments, each "name=value". parse reads the value of the param
// with the i-th of the names.
func ReadParams(cmd *cobra.Command, flow string, names, args []string, parse func(i int, text string) (json.RawMessage, error)) (map[string]json.RawMessage, error) {
	params := map[string]json.RawMessage{}
	for _, arg := range args {
		name, text, ok := strings.Cut(arg, "=")
		if !ok {
			return nil, cli.Usage(cmd, "--param %q: NAME=VALUE is expected", arg)
		}
		i := slices.Index(names, name)
		if i < 0 {
			return nil, cli.Usage(cmd, "flow %q has no param %q%s", flow, name, cli.Suggest(name, names))
		}
		value, err := parse(i, text)
		if err != nil {
			return nil, cli.Usage(cmd, "--param %s: %w", name, err)
		}
		params[name] = value
	}
	return params, nil
}
