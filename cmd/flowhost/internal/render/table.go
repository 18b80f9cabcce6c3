package render

import (
	"fmt"
	"slices"
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

// Columns are those of a list. A list that is printed in several parts uses the same
// ones.
type Columns struct {
	Names  []string
	States int   // as in [Terminal.Table]
	Narrow []int // what a terminal that is too narrow does not show: empty columns of these first, then in this order

	shown []int // nil before the first rows
}

// openEnd is how much of the last column has to fit into a line: it is text that may
// continue in the next one.
const openEnd = 20

// choose decides which columns are shown: all of them, unless they are wider than the
// terminal.
func (c *Columns) choose(out *Terminal, rows [][]string) {
	widths := ColumnWidths(slices.Concat([][]string{c.Names}, rows))
	last := len(widths) - 1
	widths[last] = min(widths[last], openEnd)
	total := -ColumnGap
	for i, width := range widths {
		c.shown = append(c.shown, i)
		total += width + ColumnGap
	}
	filled := func(i int) int {
		if slices.ContainsFunc(rows, func(row []string) bool { return row[i] != "" }) {
			return 1
		}
		return 0
	}
	order := slices.Clone(c.Narrow)
	slices.SortStableFunc(order, func(a, b int) int { return filled(a) - filled(b) })
	for _, i := range order {
		if !out.Interactive || total <= out.Width {
			return
		}
		c.shown = slices.DeleteFunc(c.shown, func(j int) bool { return i == j })
		total -= widths[i] + ColumnGap
	}
}

// of are the shown cells of a row.
func (c *Columns) of(row []string) []string {
	var cells []string
	for _, i := range c.shown {
		cells = append(cells, row[i])
	}
	return cells
}

// List prints rows for people, below the columns' names, or with asJSON one object
// per line for each.
func List[T any](out *Terminal, all []T, asJSON bool, columns *Columns, row func(T) []string) error {
	if asJSON {
		for _, one := range all {
			if err := EncodeLine(out, one); err != nil {
				return err
			}
		}
		return nil
	}
	var rows [][]string
	for _, one := range all {
		rows = append(rows, row(one))
	}
	if columns.shown == nil && len(all) > 0 {
		columns.choose(out, rows)
		rows = slices.Insert(rows, 0, columns.Names)
	}
	for i, row := range rows {
		rows[i] = columns.of(row)
	}
	out.Table(rows, slices.Index(columns.shown, columns.States))
	return nil
}
