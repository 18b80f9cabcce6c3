package diag

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hcled"
	"github.com/zclconf/go-cty/cty"

	"github.com/flowhost/flowhost/flows/internal/ctyjson"
)

// The shape is that of "terraform validate -json", format version 1.0, with the
// rule beside it.
type (
	validation struct {
		FormatVersion string       `json:"format_version"`
		Valid         bool         `json:"valid"`
		ErrorCount    int          `json:"error_count"`
		WarningCount  int          `json:"warning_count"`
		Diagnostics   []diagnostic `json:"diagnostics"`
	}
	diagnostic struct {
		Severity string     `json:"severity"`
		Rule     Rule       `json:"rule"`
		Summary  string     `json:"summary"`
		Detail   string     `json:"detail"`
		Range    *jsonRange `json:"range,omitempty"`
		Snippet  *snippet   `json:"snippet,omitempty"`
	}
	jsonRange struct {
		Filename string  `json:"filename"`
		Start    jsonPos `json:"start"`
		End      jsonPos `json:"end"`
	}
	jsonPos struct {
		Line   int `json:"line"`
		Column int `json:"column"`
		Byte   int `json:"byte"`
	}
	snippet struct {
		Context              *string        `json:"context"`
		Code                 string         `json:"code"`
		StartLine            int            `json:"start_line"`
		HighlightStartOffset int            `json:"highlight_start_offset"`
		HighlightEndOffset   int            `json:"highlight_end_offset"`
		Values               []snippetValue `json:"values"`
	}
	snippetValue struct {
		Traversal string `json:"traversal"`
		Statement string `json:"statement"`
	}
)

// JSON gives diagnostics as one JSON object, for editors and other
// programs. Files are those of [Set.Files].
func JSON(diags hcl.Diagnostics, files map[string]*hcl.File) json.RawMessage {
	v := validation{FormatVersion: "1.0", Diagnostics: make([]diagnostic, 0, len(diags))}
	for _, d := range diags {
		out := diagnostic{Severity: "error", Rule: RuleOf(d), Summary: d.Summary, Detail: d.Detail}
		if d.Severity == hcl.DiagWarning {
			out.Severity = "warning"
			v.WarningCount++
		} else {
			v.ErrorCount++
		}
		if d.Subject != nil {
			out.Range = &jsonRange{d.Subject.Filename, jsonPos(d.Subject.Start), jsonPos(d.Subject.End)}
			out.Snippet = snippetOf(d, files[d.Subject.Filename])
		}
		v.Diagnostics = append(v.Diagnostics, out)
	}
	v.Valid = v.ErrorCount == 0
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.Encode(v) // the types above hold nothing that could fail
	return bytes.TrimSpace(out.Bytes())
}

// snippetOf quotes the lines that a diagnostic is about.
func snippetOf(d *hcl.Diagnostic, file *hcl.File) *snippet {
	if file == nil || file.Bytes == nil || d.Subject.Start.Byte > len(file.Bytes) {
		return nil
	}
	shown := *d.Subject
	if d.Context != nil {
		shown = hcl.RangeOver(shown, *d.Context)
	}
	s := &snippet{StartLine: shown.Start.Line, Values: valuesOf(d)}
	if context := hcled.ContextString(file, d.Subject.Start.Byte); context != "" {
		s.Context = &context
	}
	var lines []string
	start := -1
	lineScanner := hcl.NewRangeScanner(file.Bytes, d.Subject.Filename, bufio.ScanLines)
	for lineScanner.Scan() {
		if line := lineScanner.Range(); line.Start.Line >= shown.Start.Line && line.Start.Line <= shown.End.Line {
			if start < 0 {
				start = line.Start.Byte
			}
			lines = append(lines, string(lineScanner.Bytes()))
		}
	}
	s.Code = strings.Join(lines, "\n")
	bounded := func(at int) int { return min(max(at-max(start, 0), 0), len(s.Code)) }
	s.HighlightStartOffset, s.HighlightEndOffset = bounded(d.Subject.Start.Byte), bounded(d.Subject.End.Byte)
	return s
}

// valuesOf lists the values of the names in the expression. Sensitive values
// are named as such, unknown ones left out.
func valuesOf(d *hcl.Diagnostic) []snippetValue {
	out := []snippetValue{}
	if d.Expression == nil || d.EvalContext == nil {
		return out
	}
	for _, t := range d.Expression.Variables() {
		v, diags := t.TraverseAbs(d.EvalContext)
		if diags.HasErrors() {
			continue
		}
		value := snippetValue{Traversal(t), describe(v)}
		if value.Statement != "" && !slices.Contains(out, value) {
			out = append(out, value)
		}
	}
	slices.SortFunc(out, func(a, b snippetValue) int { return strings.Compare(a.Traversal, b.Traversal) })
	return out
}

func describe(v cty.Value) string {
	const long = 60
	switch {
	case v.ContainsMarked():
		return "has a sensitive value"
	case !v.IsKnown():
		return ""
	case v.IsNull():
		return "is null"
	case v.Type().IsPrimitiveType():
		if encoded, err := ctyjson.Encode(v, ctyjson.Unmetered{}); err == nil && len(encoded) <= long {
			return "is " + string(encoded)
		}
		return "is a long " + v.Type().FriendlyName()
	case v.CanIterateElements():
		return fmt.Sprintf("is %s of length %d", v.Type().FriendlyName(), v.LengthInt())
	}
	return "is a " + v.Type().FriendlyName()
}
