package render

import (
	"fmt"
	"strings"

	"github.com/flowhost/flowhost/run"
)

// countsText sums the items of a fan-out up: how many are done, and how many are in
// which state. Of a fan-out that is over, no items are done or waiting: they ended, or
// never started.
func countsText(c *run.ItemCounts, over bool) string {
	text := Count(c.Total, "item")
	if !over {
		text = fmt.Sprintf("%d of %s done", c.Done(), text)
	}
	ends := counted(c, run.Succeeded, run.Failed, run.Skipped, run.Canceled)
	if over && c.Waiting > 0 {
		ends = append(ends, fmt.Sprintf("%d not started", c.Waiting))
	}
	if len(ends) > 0 {
		text += ": " + strings.Join(ends, ", ")
	}
	if over {
		return text
	}
	if rest := counted(c, run.Running, run.Ready, run.Waiting); len(rest) > 0 {
		text += "; " + strings.Join(rest, ", ")
	}
	return text
}

// counted are the numbers of items in states, except those without any.
func counted(c *run.ItemCounts, states ...run.State) []string {
	var parts []string
	for _, state := range states {
		if n := *c.Of(state); n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, state))
		}
	}
	return parts
}
