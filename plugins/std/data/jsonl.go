package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"github.com/flowhost/flowhost/sdk"
)

// Lines is values of JSON, one in each line.
type Lines struct {
	Source
	MaxItems int `json:"max_items,omitempty"` // default 100 000
}

// Items is values.
type Items struct {
	Items     []json.RawMessage `json:"items"`
	Truncated bool              `json:"truncated"` // there are more than max_items
}

func parseLines(ctx sdk.Context, in Lines) (Items, error) {
	source, err := in.open(ctx)
	if err != nil {
		return Items{}, err
	}
	defer source.Close()
	if in.MaxItems <= 0 {
		in.MaxItems = 100_000
	}
	out := Items{Items: []json.RawMessage{}}
	r := bufio.NewReaderSize(source, 64<<10)
	for n := 1; ; n++ {
		line, err := r.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return out, err
		}
		if value := bytes.TrimSpace(line); len(value) > 0 {
			if !json.Valid(value) {
				return out, sdk.Fail("jsonl", "line %d is not JSON: %.100q", n, value)
			}
			if len(out.Items) == in.MaxItems {
				out.Truncated = true
				return out, nil
			}
			out.Items = append(out.Items, value)
		}
		if err != nil {
			return out, nil
		}
	}
}

// Values is values to be written as lines.
type Values struct {
	Items []json.RawMessage `json:"items"`
	Store string            `json:"store,omitempty"` // name of an artifact for the result; default: it is in the output
}

func formatLines(ctx sdk.Context, in Values) (Stored, error) {
	var out bytes.Buffer
	for _, item := range in.Items {
		if err := json.Compact(&out, item); err != nil {
			return Stored{}, err
		}
		out.WriteByte('\n')
	}
	return store(ctx, out.Bytes(), in.Store)
}
