package render

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Table writes rows of cells in aligned columns. The cells of the column with index
// states are states, and colored as such; the last column is not padded.
func (t *Terminal) Table(rows [][]string, states int) {
	widths := ColumnWidths(rows)
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			padding := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+ColumnGap)
			if i == states {
				cell = t.Paint(WordColor(cell), cell)
			}
			line.WriteString(cell + padding)
		}
		fmt.Fprintln(t, strings.TrimRight(line.String(), " "))
	}
}

// ColumnGap is the number of spaces between columns.
const ColumnGap = 2

// ColumnWidths are the widths of the columns of rows, in characters.
func ColumnWidths(rows [][]string) []int {
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

// List prints rows for people, below the columns' names, or with asJSON one object
// per line for each. states is as in [terminal.table].
func List[T any](out *Terminal, all []T, asJSON bool, columns []string, states int, row func(T) []string) error {
	if asJSON {
		for _, one := range all {
			if err := EncodeLine(out, one); err != nil {
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
	out.Table(rows, states)
	return nil
}
