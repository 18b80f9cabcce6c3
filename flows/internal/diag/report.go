package diag

import (
	"cmp"
	"fmt"
	"iter"
	"slices"

	"github.com/hashicorp/hcl/v2"
)

// Report collects diagnostics.
type Report struct {
	found   hcl.Diagnostics
	guessed int // names that misspelt ones were compared with
}

// maxGuessed bounds what is done to find the nearest names.
const maxGuessed = 200_000

// MayCompare reports whether that many more names may be compared.
func (r *Report) MayCompare(names int) bool {
	r.guessed += names
	return r.guessed <= maxGuessed
}

// Guess is didYouMean where there may be many names and many misspelt ones.
func (r *Report) Guess(given, prefix string, names iter.Seq[string]) string {
	if !r.MayCompare(0) {
		return ""
	}
	all := slices.Collect(names)
	if !r.MayCompare(len(all)) {
		return ""
	}
	return DidYouMean(given, prefix, all)
}

// Add reports an error at a place, in a short summary and a detail that states
// what to do.
func (r *Report) Add(rule Rule, at hcl.Range, summary, detail string, args ...any) *hcl.Diagnostic {
	d := &hcl.Diagnostic{
		Severity: hcl.DiagError,
		Summary:  summary,
		Detail:   fmt.Sprintf(detail, args...),
		Subject:  &at,
		Extra:    &Extra{Rule: rule},
	}
	r.found = append(r.found, d)
	return d
}

// Take adds the diagnostics of a library under one rule and reports whether there
// were errors among them.
func (r *Report) Take(rule Rule, diags hcl.Diagnostics) bool {
	for _, d := range diags {
		if RuleOf(d) == "" {
			copied := *d
			copied.Extra = &Extra{Rule: rule, wrapped: d.Extra}
			d = &copied
		}
		r.found = append(r.found, d)
	}
	return diags.HasErrors()
}

// Duplicate reports a second declaration of a name.
func (r *Report) Duplicate(what, name string, at, first hcl.Range) {
	d := r.Add(RuleDuplicate, at, "Duplicate "+what, "The %s %q is declared already, at %s. Rename one of the two.", what, name, Place(first))
	d.Context = &at
}

// Count is the number of diagnostics so far.
func (r *Report) Count() int { return len(r.found) }

// Failed reports whether there are errors among the diagnostics after the first ones.
func (r *Report) Failed(first int) bool { return r.found[first:].HasErrors() }

// All gives the diagnostics in the order in which they were added.
func (r *Report) All() hcl.Diagnostics { return r.found }

// Drop removes diagnostics after the first ones.
func (r *Report) Drop(first int, unwanted func(*hcl.Diagnostic) bool) {
	kept := slices.DeleteFunc(r.found[first:], unwanted)
	r.found = r.found[:first+len(kept)]
}

// Sorted gives the diagnostics by file and line, each once.
func (r *Report) Sorted() hcl.Diagnostics {
	type key struct {
		summary, detail string
		subject         hcl.Range
	}
	seen := map[key]bool{}
	var out hcl.Diagnostics
	for _, d := range r.found {
		k := key{d.Summary, d.Detail, Subject(d)}
		if !seen[k] {
			seen[k] = true
			out = append(out, d)
		}
	}
	slices.SortStableFunc(out, func(a, b *hcl.Diagnostic) int {
		ra, rb := Subject(a), Subject(b)
		return cmp.Or(cmp.Compare(ra.Filename, rb.Filename), cmp.Compare(ra.Start.Byte, rb.Start.Byte))
	})
	if more := len(out) - MaxShown; more > 0 {
		rest := Report{}
		d := rest.Add(RuleMore, Subject(out[MaxShown]), "More problems", "There are %d more problems from here on. They are not shown: correct those above first.", more)
		if !out[MaxShown:].HasErrors() {
			d.Severity = hcl.DiagWarning
		}
		out = append(out[:MaxShown], d)
	}
	return out
}

// MaxShown bounds the diagnostics: each quotes lines of its file, which must be
// looked for.
const MaxShown = 200
