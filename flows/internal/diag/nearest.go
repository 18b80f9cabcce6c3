package diag

import (
	"fmt"
	"slices"
	"strings"
)

// Nearest is the name that is most likely meant by a misspelt one, or "". A
// third of the letters may be wrong, but not more than three; case is free.
func Nearest(given string, names []string) string {
	best, least := "", min(3, max(1, len(given)/3))+1
	for _, name := range names {
		if d := editDistance(strings.ToLower(given), strings.ToLower(name)); d < least {
			best, least = name, d
		}
	}
	return best
}

// maxMisspelt bounds the names that are compared: the cost is the product of
// their lengths.
const maxMisspelt = 64

// editDistance counts the insertions, deletions, replacements and swaps of
// neighbors that make b of a (optimal string alignment).
func editDistance(a, b string) int {
	if len(a) > maxMisspelt || len(b) > maxMisspelt {
		return maxMisspelt
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			replaced := last[j-1]
			if a[i-1] != b[j-1] {
				replaced++
			}
			row[j] = min(last[j]+1, row[j-1]+1, replaced)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}

// DidYouMean ends a detail with the nearest name, or with all of them when none
// is near and they are few. The prefix is put before each name.
func DidYouMean(given, prefix string, names []string) string {
	names = slices.Sorted(slices.Values(names))
	if name := Nearest(given, names); name != "" {
		return fmt.Sprintf(" Did you mean %s%s?", prefix, name)
	}
	const few = 16
	if len(names) == 0 || len(names) > few {
		return ""
	}
	return fmt.Sprintf(" Known here: %s%s.", prefix, strings.Join(names, ", "+prefix))
}
