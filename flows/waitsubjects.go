package flows

import (
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/flowhost/flowhost/flows/internal/budget"
	"github.com/flowhost/flowhost/flows/internal/lang"
)

// WaitSubjects are the subjects of the flow's waits as far as they are known
// before a run, sorted: a token that holds a run value is "*". A subject of which
// the first token is such a one is left out, as is one that is no text with values
// in it.
func (f *Flow) WaitSubjects() []string {
	var all []string
	for _, t := range f.AllTasks() {
		if t.isWait() && t.Wait.knownSubject != "" {
			all = append(all, t.Wait.knownSubject)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// knownSubject is what is known at load of a subject with run values in it, ""
// for too little.
func (s *exprContext) knownSubject(x *expression) string {
	template, ok := budget.Bare(x.Expression).(*hclsyntax.TemplateExpr)
	if !ok {
		return ""
	}
	const unknown = "\x00"
	text := ""
	for _, part := range template.Parts {
		known := unknown
		if x, ok := s.bind(part, "", lang.Run); ok && x.roots&runRoots == 0 {
			if v, ok := s.compute(x); ok && v.IsKnown() && !v.IsNull() && !v.IsMarked() && v.Type() == cty.String {
				known = v.AsString()
			}
		}
		text += known
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
