package flows

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/zclconf/go-cty/cty"

	"github.com/flowhost/flowhost/flows/internal/budget"
	"github.com/flowhost/flowhost/flows/internal/ctyjson"
	"github.com/flowhost/flowhost/flows/internal/jsonschema"
)

// decodeJSON is [ctyjson.Decode] with a budget of its own.
func decodeJSON(src []byte) (cty.Value, error) { return ctyjson.Decode(src, budget.New()) }

// encodeJSON is [ctyjson.Encode] with a budget of its own.
func encodeJSON(v cty.Value) (json.RawMessage, error) { return ctyjson.Encode(v, budget.New()) }

func keys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// TypeText spells a JSON Schema as the types of variables are spelled, "list(string)"
// or "object({ id = string, note = optional(string) })". What the schema leaves
// open, and what this package does not understand of it, is "any".
func TypeText(schema json.RawMessage) string { return jsonschema.TypeText(schema) }

// CheckSchema finds what in a JSON Schema cannot be what its author meant: types
// that do not exist, references to nothing, fields that are required and cannot be
// there, and values of these keywords that are of the wrong kind. When a flow is
// checked they make a type wider, and mistakes pass. Each fault is a sentence with its
// place, a JSON pointer. Keywords that are not known here are not looked at.
func CheckSchema(schema json.RawMessage) []string { return jsonschema.Check(schema) }
