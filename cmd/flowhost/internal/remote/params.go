package remote

import (
	"context"
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/flowfiles"
	"github.com/flowhost/flowhost/run"
)

// AskParams reads the values of --param for a flow of the host, which knows their
// types.
func AskParams(ctx context.Context, cmd *cobra.Command, client *api.Client, flow string, args []string) (map[string]json.RawMessage, error) {
	if len(args) == 0 {
		return nil, nil
	}
	found, err := client.Flows(ctx, flow)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, UnknownFlow(ctx, client, flow)
	}
	declared := found[0].Params
	names := make([]string, len(declared))
	for i, p := range declared {
		names[i] = p.Name
	}
	return flowfiles.ReadParams(cmd, flow, names, args, func(i int, text string) (json.RawMessage, error) { return paramValue(declared[i].Type, text) })
}

// paramValue encodes an argument: as a string for a param of type string or any, as
// JSON for the others. The host, which knows the type, rejects invalid JSON.
func paramValue(declared, text string) (json.RawMessage, error) {
	if declared != "" && declared != "any" && declared != "string" && json.Valid([]byte(text)) {
		return json.RawMessage(text), nil
	}
	return run.EncodeJSON(text)
}
