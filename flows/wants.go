package flows

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/hashicorp/hcl/v2"
)

// grantable is what this version grants, by the word of the grant block, each as
// it is written there. A plugin's other wants come true with later versions.
var grantable = map[string]string{"files": `files = { "./data" = "ro" }`}

// checkWants warns of what a task's plugin wants where no grant block holds for the
// task. One that grants less is an answer, and so is an empty one: a plugin may do
// without.
func (s *exprContext) checkWants(own *grant, p *plugin, named *hcl.Attribute) {
	if own != nil || p == nil || p.grant != nil || p.signature == nil || s.module.restored != nil {
		return
	}
	who, at := "This task has no grant block, and "+p.Source, named.Expr.Range()
	if p.Name != "" {
		who, at = fmt.Sprintf("Plugin %q has no grant block and", p.Name), p.block.DefRange
	}
	for _, want := range p.signature.Wants {
		line := grantable[want.Name]
		if line == "" {
			continue
		}
		d := s.diags.Add(RuleGrant, at, "Wanted and not granted", "%s wants %s%s. Write grant { %s } with what it may use, or grant {} to do without.",
			who, want.Name, reason(want.Why), line)
		d.Severity = hcl.DiagWarning
	}
}

// reason quotes why a plugin wants something, for the end of half a sentence.
func reason(why string) string {
	if why = clip(oneLine(why)); why == "" {
		return ""
	}
	return fmt.Sprintf(", in its author's words: %q", why)
}

// oneLine makes a line of words from elsewhere, of characters that can be seen.
func oneLine(text string) string {
	hidden := func(r rune) bool { return r == ' ' || !unicode.IsPrint(r) }
	return strings.Join(strings.FieldsFunc(text, hidden), " ")
}
