package main

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// table writes rows of cells below each other. The cells of the column with the
// given index are words for states, and coloured as such; the last column is not
// padded.
func (t *terminal) table(rows [][]string, states int) {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			padding := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+2)
			if i == states {
				cell = t.paint(wordColor(cell), cell)
			}
			line.WriteString(cell + padding)
		}
		fmt.Fprintln(t, strings.TrimRight(line.String(), " "))
	}
}

// cut shortens a text to so many characters. Behind what is left of a longer one
// stands how much it was.
func cut(text string, width int) string {
	if len(text) <= width {
		return text
	}
	mark := "… (" + size(int64(len(text))) + ")"
	keep := max(0, width-utf8.RuneCountInString(mark))
	for i := range text {
		if keep == 0 {
			return text[:i] + mark
		}
		keep--
	}
	return text
}
