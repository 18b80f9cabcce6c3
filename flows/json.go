package flows

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/zclconf/go-cty/cty"

	"github.com/flowhost/flowhost/flows/internal/budget"
	"github.com/flowhost/flowhost/flows/internal/ctyjson"
)

// decodeJSON is [ctyjson.Decode] with a budget of its own.
func decodeJSON(src []byte) (cty.Value, error) { return ctyjson.Decode(src, budget.New()) }

// encodeJSON is [ctyjson.Encode] with a budget of its own.
func encodeJSON(v cty.Value) (json.RawMessage, error) { return ctyjson.Encode(v, budget.New()) }

func keys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
