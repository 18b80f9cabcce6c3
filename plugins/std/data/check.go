package main

import (
	"fmt"
	"strings"

	"github.com/flowhost/flowhost/sdk"
)

// Checks is conditions by what they say: { "the total is positive" = task.sum.output > 0 }.
type Checks struct {
	That map[string]bool `json:"that"`
	Data any             `json:"data,omitempty"` // passed on
}

// assert returns the data if all conditions are true.
func assert(_ sdk.Context, in Checks) (any, error) {
	var wrong []string
	for text, holds := range in.That {
		if !holds {
			wrong = append(wrong, text)
		}
	}
	if len(wrong) == 0 {
		return in.Data, nil
	}
	return nil, &sdk.Error{Code: "assert", Message: fmt.Sprintf("not true: %s", strings.Join(sorted(wrong), "; ")), Details: map[string]any{"failed": wrong}}
}
