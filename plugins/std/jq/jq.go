package main

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/itchyny/gojq"

	"github.com/flowhost/flowhost/sdk"
)

// Program is a program of jq, and what it works on.
type Program struct {
	Query string         `json:"query"`
	Data  any            `json:"data,omitempty"`
	Vars  map[string]any `json:"vars,omitempty"` // $name
}

// results is how many results a program has at most.
const results = 100_000

func jq(ctx sdk.Context, in Program) (any, error) {
	all, err := in.run(ctx, 1)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return all[0], nil
}

func jqAll(ctx sdk.Context, in Program) ([]any, error) { return in.run(ctx, results) }

// run returns up to so many results.
func (p *Program) run(ctx context.Context, most int) ([]any, error) {
	query, err := gojq.Parse(p.Query)
	if err != nil {
		return nil, sdk.Fail("syntax", "query: %w", err)
	}
	var names []string
	var values []any
	for _, name := range slices.Sorted(maps.Keys(p.Vars)) {
		names, values = append(names, "$"+name), append(values, p.Vars[name])
	}
	code, err := gojq.Compile(query, gojq.WithVariables(names), gojq.WithEnvironLoader(func() []string { return nil }))
	if err != nil {
		return nil, sdk.Fail("syntax", "query: %w", err)
	}
	all := []any{}
	for it := code.RunWithContext(ctx, p.Data, values...); len(all) < most; {
		value, more := it.Next()
		if !more {
			break
		}
		if err, failed := value.(error); failed {
			var halt *gojq.HaltError
			if errors.As(err, &halt) && halt.Value() == nil {
				break
			}
			return nil, sdk.Fail("jq", "%w", err)
		}
		all = append(all, value)
	}
	return all, nil
}
