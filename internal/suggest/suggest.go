// Package suggest finds the name that was probably meant by a misspelled one.
package suggest

import "strings"

// Nearest returns the name with the smallest edit distance to given, ignoring case,
// or "" if more than a third of the letters, or more than three, would be wrong. Of
// equally near names it returns the first.
func Nearest(given string, names []string) string {
	best, least := "", min(3, max(1, len(given)/3))+1
	for _, name := range names {
		if d := distance(strings.ToLower(given), strings.ToLower(name)); d < least {
			best, least = name, d
		}
	}
	return best
}

// maxLength bounds the names that are compared, because the cost is the product of
// their lengths.
const maxLength = 64

// distance counts the insertions, deletions, substitutions and transpositions of
// neighbors that turn a into b (optimal string alignment distance).
func distance(a, b string) int {
	if len(a) > maxLength || len(b) > maxLength {
		return maxLength
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			substituted := last[j-1]
			if a[i-1] != b[j-1] {
				substituted++
			}
			row[j] = min(last[j]+1, row[j-1]+1, substituted)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
