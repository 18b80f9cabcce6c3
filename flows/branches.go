package flows

import (
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

const plainKinds = kindBool | kindNumber | kindString

// checkBranches compares both branches with what is wanted, where they stand. HCL
// brings them to one type, which makes other texts of plain values and leaves names
// and the kinds of the rest as they are.
func (t *typing) checkBranches(e *hclsyntax.ConditionalExpr, want *shape, path string) {
	if v, ok := t.fixed(e); ok {
		t.compare(want, shapeOfValue(v), spot{path: path, at: e.Range(), what: t.source(e)})
		return
	}
	t.operand(e.Condition, kindBool|kindString)
	quiet := *t
	quiet.lenient = true
	yes, no := quiet.infer(e.TrueResult), quiet.infer(e.FalseResult)
	if !t.agree(e, yes, no) {
		return
	}
	same := yes.present() == no.present() && yes.present()&^plainKinds == 0 && oneKind(yes.present())
	if !same && yes.kinds != kindNull && no.kinds != kindNull {
		want = loosened(want, map[*shape]*shape{})
	}
	branch := t.branch()
	branch.check(e.TrueResult, want, path)
	branch.check(e.FalseResult, want, path)
}

// branch looks at a branch of a conditional.
func (t *typing) branch() *typing {
	branch := *t
	branch.guarded = true
	return &branch
}

// agree reports branches of kinds that no type has in common: such a condition
// cannot be evaluated, whichever branch is taken.
func (t *typing) agree(e *hclsyntax.ConditionalExpr, yes, no *shape) bool {
	a, b := yes.present(), no.present()
	plain := (a|b)&^plainKinds == 0 && (a|b)&kindString != 0 // a text stands for either
	if a == 0 || b == 0 || a&b != 0 || plain {
		return true
	}
	t.report(RuleType, e.Range(), "Branches of different types", "Both branches must be of one type: one is %s, the other %s.", a, b)
	return false
}

// loosened is what may become of what is wanted where plain values may be converted
// to each other.
func loosened(s *shape, seen map[*shape]*shape) *shape {
	if s == nil || seen[s] != nil {
		return seen[s]
	}
	out := new(shape)
	seen[s] = out
	*out = *s
	if s.kinds&plainKinds != 0 {
		out.kinds |= plainKinds
		out.words, out.named, out.whole, out.fraction = nil, false, false, false
	}
	out.rest, out.items = loosened(s.rest, seen), loosened(s.items, seen)
	if s.fields != nil {
		out.fields = make(map[string]*shape, len(s.fields))
		for name, field := range s.fields {
			out.fields[name] = loosened(field, seen)
		}
	}
	return out
}
