package access

import (
	"fmt"
	"strings"
)

// Select returns the allow block that decides on a flow, the most specific one whose pattern
// matches its full name: its pattern matches only what the patterns of the others match, too.
// It fails if there is no such block among several that match. Without any allow block it
// returns nil, and with some of which none matches an empty one, which allows nothing.
func Select(all []Allow, flow string) (*Allow, error) {
	if len(all) == 0 {
		return nil, nil
	}
	var matching []*Allow
	for i := range all {
		if matches(all[i].Pattern, flow) {
			matching = append(matching, &all[i])
		}
	}
	if len(matching) == 0 {
		return &Allow{}, nil
	}
	best := matching[0]
	for _, a := range matching[1:] {
		if matches(best.Pattern, a.Pattern) {
			best = a
		}
	}
	for _, a := range matching {
		if a != best && (!matches(a.Pattern, best.Pattern) || matches(best.Pattern, a.Pattern)) {
			return nil, &TieError{Flow: flow, Blocks: [2]*Allow{a, best}}
		}
	}
	return best, nil
}

// TieError reports two allow blocks of which neither is more specific than the other.
type TieError struct {
	Flow   string
	Blocks [2]*Allow
}

func (e *TieError) Error() string {
	a, b := e.Blocks[0], e.Blocks[1]
	return fmt.Sprintf("allow %q%s and allow %q%s both match flow %q, and neither is more specific: add a block for the flow by its name, or narrow one of the patterns",
		a.Pattern, a.place(), b.Pattern, b.place(), e.Flow)
}

func (a *Allow) place() string {
	if a.From == "" {
		return ""
	}
	return " (" + a.From + ")"
}

// matches reports whether a pattern matches a name: * is any part of it, also an empty one.
// For another pattern it reports whether all that matches that one matches the pattern.
func matches(pattern, name string) bool {
	first, rest, wild := strings.Cut(pattern, "*")
	if !wild {
		return pattern == name
	}
	name, ok := strings.CutPrefix(name, first)
	if !ok {
		return false
	}
	parts := strings.Split(rest, "*")
	for _, part := range parts[:len(parts)-1] {
		_, after, found := strings.Cut(name, part)
		if !found {
			return false
		}
		name = after
	}
	return strings.HasSuffix(name, parts[len(parts)-1])
}
