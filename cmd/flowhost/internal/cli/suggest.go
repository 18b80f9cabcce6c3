package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agext/levenshtein"

	"github.com/flowhost/flowhost/flows"
)

// listed is how many names a message lists: a task may have many items.
const listed = 50

// Suggest ends a message about an unknown name with the nearest name, or with all of
// them if none is near. A flow's name without its directory counts as near, and so does
// a wait's without its kind.
func Suggest(given string, names []string) string {
	if len(names) == 0 {
		return ""
	}
	distance := func(name string) int {
		if strings.HasSuffix(name, "/"+given) || name == flows.WaitPrefix+given {
			return 0
		}
		return levenshtein.Distance(given, name, nil)
	}
	best := slices.MinFunc(names, func(a, b string) int { return distance(a) - distance(b) })
	if distance(best) <= max(1, len(given)/3) {
		return "; did you mean \"" + best + "\"?"
	}
	if more := len(names) - listed; more > 0 {
		return fmt.Sprintf("; known: %s and %d more", strings.Join(names[:listed], ", "), more)
	}
	return "; known: " + strings.Join(names, ", ")
}
