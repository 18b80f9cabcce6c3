package render

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"
)

// maxSearched bounds the bytes that hcl searches for the lines that diagnostics quote:
// it reads the whole file for each of them, at about 10 MB/s. Later diagnostics only
// name their line.
const maxSearched = 8 << 20

// Diagnostics writes problems with their lines of source.
func (t *Terminal) Diagnostics(files map[string]*hcl.File, diags hcl.Diagnostics) {
	w := hcl.NewDiagnosticTextWriter(t, files, uint(t.Width), t.color)
	searched := 0
	for _, d := range diags {
		if d.Subject != nil {
			file := files[d.Subject.Filename]
			if file != nil {
				searched += len(file.Bytes)
			}
			if file == nil || searched > maxSearched { // without a file it is about the path
				whole := *d
				whole.Subject, whole.Context = nil, nil
				if file != nil {
					whole.Summary = fmt.Sprintf("%s:%d: %s", d.Subject.Filename, d.Subject.Start.Line, d.Summary)
				}
				d = &whole
			}
		}
		if err := w.WriteDiagnostic(d); err != nil {
			t.Say("writing the problems failed: %s", err)
			return
		}
	}
}
