package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/flowhost/flowhost/sdk"
)

// CSV is rows as text (RFC 4180).
type CSV struct {
	Source
	Delimiter string   `json:"delimiter,omitempty"` // default ","
	Columns   []string `json:"columns,omitempty"`   // default: those of the first line
	Header    bool     `json:"header,omitempty"`    // with columns: the first line has others, and is left out
	Types     bool     `json:"types,omitempty"`     // what looks like a number, true or false becomes one; an empty field null
	MaxRows   int      `json:"max_rows,omitempty"`  // default 100 000
}

// Table is rows.
type Table struct {
	Columns   []string         `json:"columns"`
	Rows      []map[string]any `json:"rows"`
	Truncated bool             `json:"truncated"` // there are more than max_rows
}

func parseCSV(ctx sdk.Context, in CSV) (Table, error) {
	comma, err := delimiter(in.Delimiter)
	if err != nil {
		return Table{}, err
	}
	source, err := in.open(ctx)
	if err != nil {
		return Table{}, err
	}
	defer source.Close()
	if in.MaxRows <= 0 {
		in.MaxRows = 100_000
	}
	r := csv.NewReader(source)
	r.Comma, r.ReuseRecord = comma, true
	out := Table{Columns: in.Columns, Rows: []map[string]any{}}
	if len(in.Columns) == 0 || in.Header {
		first, err := r.Read()
		if errors.Is(err, io.EOF) {
			out.Columns = append([]string{}, in.Columns...)
			return out, nil
		}
		if err != nil {
			return out, wrongCSV(err)
		}
		if len(in.Columns) == 0 {
			out.Columns = slices.Clone(first)
			out.Columns[0] = string(bytes.TrimPrefix([]byte(first[0]), []byte("\uFEFF")))
		}
	}
	for i, name := range out.Columns {
		if slices.Contains(out.Columns[:i], name) {
			return out, sdk.Fail("csv", "there are two columns %q, and a row has one value of a name: name them in columns, with header = true", name)
		}
	}
	r.FieldsPerRecord = len(out.Columns)
	for {
		record, err := r.Read()
		switch {
		case errors.Is(err, io.EOF):
			return out, nil
		case err != nil:
			return out, wrongCSV(err)
		case len(out.Rows) == in.MaxRows:
			out.Truncated = true
			return out, nil
		}
		row := make(map[string]any, len(record))
		for i, field := range record {
			row[out.Columns[i]] = typed(field, in.Types)
		}
		out.Rows = append(out.Rows, row)
	}
}

func wrongCSV(err error) error {
	var wrong *csv.ParseError
	if errors.As(err, &wrong) {
		return sdk.Fail("csv", "%w", err)
	}
	return err
}

func delimiter(text string) (rune, error) {
	if text == "" {
		return ',', nil
	}
	r, size := utf8.DecodeRuneInString(text)
	if size != len(text) || r == utf8.RuneError || r == '"' || r == '\r' || r == '\n' {
		return 0, sdk.Fail("input", "delimiter %q is not one character", text)
	}
	return r, nil
}

// typed is a field as the value that it looks like. What a number would not give back as it is
// written, such as 007, stays text.
func typed(field string, types bool) any {
	switch {
	case !types:
		return field
	case field == "":
		return nil
	case field == "true", field == "false":
		return field == "true"
	}
	if n, err := strconv.ParseInt(field, 10, 64); err == nil && strconv.FormatInt(n, 10) == field {
		return n
	}
	if json.Valid([]byte(field)) {
		if f, err := strconv.ParseFloat(field, 64); err == nil {
			return f
		}
	}
	return field
}

// Rows is rows to be written.
type Rows struct {
	Rows      []map[string]json.RawMessage `json:"rows"`
	Columns   []string                     `json:"columns,omitempty"` // default: those of the first row, in alphabetical order
	Delimiter string                       `json:"delimiter,omitempty"`
	Store     string                       `json:"store,omitempty"` // name of an artifact for the result; default: it is in the output
}

func formatCSV(ctx sdk.Context, in Rows) (Stored, error) {
	comma, err := delimiter(in.Delimiter)
	if err != nil {
		return Stored{}, err
	}
	if len(in.Columns) == 0 && len(in.Rows) > 0 {
		in.Columns = slices.Sorted(maps.Keys(in.Rows[0]))
	}
	var out bytes.Buffer
	w := csv.NewWriter(&out)
	w.Comma = comma
	_ = w.Write(in.Columns) // into memory, as all that follows
	record := make([]string, len(in.Columns))
	for i, row := range in.Rows {
		for name := range row {
			if !slices.Contains(in.Columns, name) {
				return Stored{}, sdk.Fail("input", "row %d has the field %q, which is no column: name all of them in columns", i, name)
			}
		}
		for i, name := range in.Columns {
			record[i] = field(row[name])
		}
		_ = w.Write(record)
	}
	w.Flush()
	return store(ctx, out.Bytes(), in.Store)
}

// field is a value as a field: texts as they are, null as nothing, everything else as JSON.
func field(value json.RawMessage) string {
	var text string
	switch {
	case len(value) == 0, string(value) == "null":
		return ""
	case json.Unmarshal(value, &text) == nil:
		return text
	}
	return string(value)
}
