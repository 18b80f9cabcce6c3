package flows

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/flowhost/flowhost/flows/internal/diag"
	"github.com/flowhost/flowhost/flows/internal/lang"
	"github.com/flowhost/flowhost/flows/internal/reachspec"
	"github.com/flowhost/flowhost/flows/internal/syntax"
	"github.com/flowhost/flowhost/run/access"
)

// reachDecoder reads a block that states what may be reached.
type reachDecoder struct {
	*exprContext
	content *lang.Content
}

// inner is a block within this one; ok is false without one.
func (d reachDecoder) inner(name string) (reachDecoder, bool) {
	b := d.content.One(name)
	if b == nil {
		return reachDecoder{}, false
	}
	s, c := d.decodeAt(b, d.schema.Block(name).Body)
	return reachDecoder{s, c}, true
}

// word is an argument that is one of a few strings, or what it is by default.
func (d reachDecoder) word(name, otherwise string) string {
	if word, ok := d.exprContext.word(d.content.Arg(name)); ok {
		return word
	}
	return otherwise
}

// checked is a string of a certain form, empty if it is absent or wrong.
func (d reachDecoder) checked(name string, check func(string) error) string {
	a := d.content.Arg(name)
	text, ok := d.text(a)
	if !ok || !d.fits(a, a.Expr.Range(), text, check) {
		return ""
	}
	return text
}

func (d reachDecoder) fits(a *hcl.Attribute, at hcl.Range, text string, check func(string) error) bool {
	err := check(text)
	if err != nil {
		d.diags.Add(RuleValue, at, "Value not allowed", "%q in %q cannot be used: %s.", text, a.Name, err)
	}
	return err == nil
}

// list is a list of strings, each as the check gives it.
func (d reachDecoder) list(name string, canonical func(string) (string, error)) []string {
	a := d.content.Arg(name)
	v, ok := d.value(a, cty.List(cty.String))
	if !ok {
		return nil
	}
	written, diags := hcl.ExprList(a.Expr)
	var out []string
	for i, one := range v.AsValueSlice() {
		at := a.Expr.Range()
		if !diags.HasErrors() && i < len(written) {
			at = written[i].Range()
		}
		if one.IsNull() {
			d.diags.Add(RuleValue, at, "Value not allowed", "%q has a null in it.", a.Name)
			continue
		}
		text, err := canonical(one.AsString())
		if err != nil {
			d.diags.Add(RuleValue, at, "Value not allowed", "%q in %q cannot be used: %s.", one.AsString(), a.Name, err)
			continue
		}
		out = append(out, text)
	}
	return out
}

// as makes of a check what list needs.
func as(check func(string) error) func(string) (string, error) {
	return func(text string) (string, error) { return text, check(text) }
}

// secretIn is the handle of a secret that an expression is; ok is false for any other.
func (s *exprContext) secretIn(e hcl.Expression) (string, bool) {
	t, ok := syntax.Reference(e)
	if !ok || t.RootName() != "secret" {
		return "", false
	}
	name, at, ok := syntax.Step(t, 1)
	if !ok || len(t) != 2 {
		s.diags.Add(RuleReference, e.Range(), "A reference to a secret is required", "Write secret.NAME: a secret has no parts, and its name is written out.")
		return "", true
	}
	if s.module.alone {
		s.undeclarable(e, "secret", name)
		return "", true
	}
	b := &binding{exprContext: s, x: new(expression)}
	if !b.declares(rootWord("secret"), name) && s.module.restored == nil {
		b.unknownName(rootWord("secret"), name, at)
	}
	return name, true
}

// undeclarable reports a name in a grant that stands beside no declarations.
func (s *exprContext) undeclarable(e hcl.Expression, kind, name string) {
	s.diags.Add(RuleReference, e.Range(), "Nothing is declared here",
		"A grant on its own has no %s.%s, which a flow file or the settings of a host declare. To try the plugin with it, write a flow beside the declaration whose task has this grant, and run it once: flowhost exec PATH.", kind, name)
}

// handle is an argument that takes a secret only.
func (d reachDecoder) handle(name string) access.Value {
	a := d.content.Arg(name)
	if a == nil {
		return access.Value{}
	}
	secret, ok := d.secretIn(a.Expr)
	if !ok {
		d.diags.Add(RuleType, a.Expr.Range(), "A secret is required",
			"%q is a credential, and flow files are stored and shown: declare secret \"NAME\" { … }, and write %s = secret.NAME, alone.", name, name)
	}
	return d.own(secret, a.Expr.Range())
}

// own refuses a secret of the settings of the host in a connection of a flow file: its author
// could send it anywhere.
func (d reachDecoder) own(name string, at hcl.Range) access.Value {
	if d.module.options.Operator.secret(name) != nil && d.module.reach.secrets[name] == nil && d.module.restored == nil {
		d.diags.Add(RuleMisplaced, at, "A secret of the host's settings",
			"secret.%s belongs to the settings of the host, and to the connections there. Declare this connection there, or a secret here.", name)
	}
	return access.Value{Secret: name}
}

// url is the beginning of URLs.
func (d reachDecoder) url(name string) string {
	a := d.content.Arg(name)
	text, ok := d.text(a)
	if !ok {
		return ""
	}
	if err := reachspec.BaseURL(text); err != nil {
		d.unfit(a, err)
		return ""
	}
	return text
}

// unfit reports a text that may hold a credential: it is not repeated.
func (d reachDecoder) unfit(a *hcl.Attribute, err error) {
	d.diags.Add(RuleValue, a.Expr.Range(), "Value not allowed", "%q cannot be used: %s.", a.Name, err)
}

// textOrSecret is an argument that is shown in lists as far as it is a text.
func (d reachDecoder) textOrSecret(name string, check func(string) error) access.Value {
	a := d.content.Arg(name)
	if a == nil {
		return access.Value{}
	}
	if secret, ok := d.secretIn(a.Expr); ok {
		return d.own(secret, a.Expr.Range())
	}
	text, ok := d.text(a)
	if ok && check != nil {
		if err := check(text); err != nil {
			d.unfit(a, err)
		}
	}
	return access.Value{Text: text}
}

// oneOf is the one word of several that the block has, reported if that is not so.
func (d reachDecoder) oneOf(words []string) string {
	found := ""
	for _, word := range words {
		var at hcl.Range
		if a := d.content.Arg(word); a != nil {
			at = a.NameRange
		} else if b := d.content.One(word); b != nil {
			at = b.DefRange
		} else {
			continue
		}
		if found != "" {
			d.diags.Add(RuleConflict, at, "Arguments exclude each other", "%s has one of these: leave %q or %q out.", diag.Sentence(d.schema.Title), found, word)
			return ""
		}
		found = word
	}
	if found == "" {
		d.diags.Add(RuleMissing, d.content.At, "Missing argument", "%s needs one of %s.", diag.Sentence(d.schema.Title), diag.Join(words, "and"))
	}
	return found
}

// plainText is a known string that is not sensitive.
func plainText(v cty.Value) (string, bool) {
	if v.IsMarked() || !v.IsKnown() || v.IsNull() || v.Type() != cty.String {
		return "", false
	}
	return v.AsString(), true
}

// key is the key of an object, which is written out.
func (s *exprContext) key(e hcl.Expression) (string, bool) {
	v, diags := e.Value(nil)
	text, ok := "", false
	if !diags.HasErrors() {
		text, ok = plainText(v)
	}
	if !ok {
		s.diags.Add(RuleType, e.Range(), "A constant is required", "The name must be written out.")
	}
	return text, ok
}
