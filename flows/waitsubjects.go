package flows

import (
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// WaitSubjects are the subjects of the flow's waits as far as they are known
// before a run, sorted: a token that holds a run value is "*". A subject of which
// the first token is such a one is left out, as is one that is no text with values
// in it.
func (f *Flow) WaitSubjects() []string {
	var all []string
	for _, t := range f.AllTasks() {
		if t.isWait() && t.Wait.For == WaitSubject && t.Wait.value != nil {
			if subject := f.foreseenSubject(t.Wait.value); subject != "" {
				all = append(all, subject)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (f *Flow) foreseenSubject(x *expression) string {
	if x.constant != cty.NilVal {
		return x.constant.AsString() // which was checked
	}
	template, ok := bare(x.Expression).(*hclsyntax.TemplateExpr)
	if !ok {
		return ""
	}
	const unknown = "\x00"
	text := ""
	for _, part := range template.Parts {
		v, diags := part.Value(f.base)
		if diags.HasErrors() || !v.IsKnown() || v.IsNull() || v.IsMarked() || v.Type() != cty.String {
			text += unknown
			continue
		}
		text += v.AsString()
	}
	tokens := strings.Split(text, ".")
	for i, token := range tokens {
		if strings.Contains(token, unknown) {
			tokens[i] = "*"
		}
	}
	if subject := strings.Join(tokens, "."); tokens[0] != "*" && isSubject(subject) {
		return subject
	}
	return ""
}
