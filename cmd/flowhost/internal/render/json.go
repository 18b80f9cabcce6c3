package render

import (
	"encoding/json"
	"io"
)

// JSON writes a value as JSON: indented for a person at a terminal, one line
// for programs. Recorded JSON in it keeps its bytes but for white space.
func (t *Terminal) JSON(v any) error {
	enc := newEncoder(t)
	if t.Interactive {
		enc.SetIndent("", "  ")
	}
	return enc.Encode(v)
}

// EncodeLine writes a value as JSON on one line, also for a person: it is one of
// many.
func EncodeLine(w io.Writer, v any) error { return newEncoder(w).Encode(v) }

func newEncoder(w io.Writer) *json.Encoder {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc
}
