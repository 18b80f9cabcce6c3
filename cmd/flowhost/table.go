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
	widths := columnWidths(rows)
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			padding := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+columnGap)
			if i == states {
				cell = t.paint(wordColor(cell), cell)
			}
			line.WriteString(cell + padding)
		}
		fmt.Fprintln(t, strings.TrimRight(line.String(), " "))
	}
}

// columnGap is the number of spaces between columns.
const columnGap = 2

func columnWidths(rows [][]string) []int {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	return widths
}

// list prints rows for people, below the columns' names, or with asJSON one object
// for each, on a line of its own. states is as in [terminal.table].
func list[T any](out *terminal, all []T, asJSON bool, columns []string, states int, row func(T) []string) error {
	if asJSON {
		for _, one := range all {
			if err := encodeLine(out, one); err != nil {
				return err
			}
		}
		return nil
	}
	var rows [][]string
	if columns != nil && len(all) > 0 {
		rows = append(rows, columns)
	}
	for _, one := range all {
		rows = append(rows, row(one))
	}
	out.table(rows, states)
	return nil
}
