package main

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
)

// parseParams reads the values of --param for a flow that was loaded.
func parseParams(cmd *cobra.Command, f *flows.Flow, args []string) (map[string]json.RawMessage, error) {
	names := make([]string, len(f.Params))
	for i, p := range f.Params {
		names[i] = p.Name
	}
	return readParams(cmd, f.Name, names, args, func(i int, text string) (json.RawMessage, error) { return f.Params[i].Parse(text) })
}

// askParams reads the values of --param for a flow of the host, which knows their
// types.
func askParams(ctx context.Context, cmd *cobra.Command, client *api.Client, flow string, args []string) (map[string]json.RawMessage, error) {
	if len(args) == 0 {
		return nil, nil
	}
	found, err := client.Flows(ctx, flow)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, unknownFlow(ctx, client, flow)
	}
	declared := found[0].Params
	names := make([]string, len(declared))
	for i, p := range declared {
		names[i] = p.Name
	}
	return readParams(cmd, flow, names, args, func(i int, text string) (json.RawMessage, error) { return paramValue(declared[i].Type, text) })
}

// readParams reads arguments, each "name=value". parse reads the value of the param
// with the i-th of the names.
func readParams(cmd *cobra.Command, flow string, names, args []string, parse func(i int, text string) (json.RawMessage, error)) (map[string]json.RawMessage, error) {
	params := map[string]json.RawMessage{}
	for _, arg := range args {
		name, text, ok := strings.Cut(arg, "=")
		if !ok {
			return nil, usage(cmd, "--param %q: NAME=VALUE is expected", arg)
		}
		i := slices.Index(names, name)
		if i < 0 {
			return nil, usage(cmd, "flow %q has no param %q%s", flow, name, suggest(name, names))
		}
		value, err := parse(i, text)
		if err != nil {
			return nil, usage(cmd, "--param %s: %w", name, err)
		}
		params[name] = value
	}
	return params, nil
}

// paramValue is the text itself for a param of type string or any, and JSON for the
// others. What is no JSON is left to the host to refuse, which knows the type.
func paramValue(declared, text string) (json.RawMessage, error) {
	if declared != "" && declared != "any" && declared != "string" && json.Valid([]byte(text)) {
		return json.RawMessage(text), nil
	}
	return run.EncodeJSON(text)
}
