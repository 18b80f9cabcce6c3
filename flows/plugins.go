package flows

import (
	"encoding/hex"
	"errors"
	"io/fs"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	hcljson "github.com/hashicorp/hcl/v2/json"
	"github.com/zclconf/go-cty/cty"

	"github.com/flowhost/flowhost/flows/internal/diag"
	"github.com/flowhost/flowhost/flows/internal/lang"
	"github.com/flowhost/flowhost/flows/internal/syntax"
	"github.com/flowhost/flowhost/run"
)

// Plugin is the module that a task calls.
type Plugin struct {
	Name   string // of the plugin block; empty when the task names a path
	Source string // as the flow file names it
	Digest string // "sha256:..."; empty without a catalog
}

// plugin is a declared plugin, or a path that a task names.
type plugin struct {
	Plugin
	at        hcl.Range
	block     *hcl.Block
	config    cty.Value // an object, or NilVal
	configAt  hcl.Range
	limits    run.Limits
	grant     *grant     // nil without a grant block
	signature *signature // nil when the module cannot be used or is not known
	part      string     // of the module, for a standard plugin
}

// export is the name under which the module has a function of the plugin.
func (p *plugin) export(function string) string {
	if p == nil || p.part == "" || function == "" {
		return function
	}
	return p.part + "." + function
}

// signature is what looking a module up gave, once.
type signature struct {
	run.Signature
	err       error
	contracts map[string]*contract // by function, as far as they were read
}

// pluginType carries plugins through expressions such as a condition that
// chooses one.
var pluginType = cty.Capsule("plugin", reflect.TypeFor[plugin]())

func (m *module) declarePlugin(b *hcl.Block) {
	name, at, ok := m.label(b)
	if !ok {
		return
	}
	if first := m.plugins[name]; first != nil {
		m.diags.Duplicate("plugin", name, at, first.at)
		return
	}
	m.plugins[name] = &plugin{Plugin: Plugin{Name: name}, at: at, block: b, config: cty.NilVal}
}

func (m *module) decodePlugins() {
	values := make(map[string]cty.Value, len(m.plugins))
	for _, name := range keys(m.plugins) {
		m.decodePlugin(m.plugins[name])
		values[name] = cty.CapsuleVal(pluginType, m.plugins[name])
	}
	m.base.Variables["plugin"] = cty.ObjectVal(values)
}

func (m *module) decodePlugin(p *plugin) {
	s, c := m.exprContext(nil).decodeAt(p.block, pluginSchema)
	if b := c.One("limits"); b != nil {
		p.limits = s.limits(b)
	}
	p.grant = s.grant(c.One("grant"))
	if a := c.Arg("config"); a != nil {
		p.config, p.configAt = s.object(a), a.Expr.Range()
	}
	digest, pinned := s.text(c.Arg("digest"))
	if pinned && !isDigest(digest) {
		m.diags.Add(RuleDigest, c.Arg("digest").Expr.Range(), "Not a digest", "A digest is \"sha256:\" and 64 hexadecimal digits in lower case.")
		pinned = false
	}
	source := c.Arg("source")
	if p.Source, _ = s.text(source); p.Source == "" {
		return
	}
	m.lookUp(p, source.Expr.Range())
	if pinned && p.Digest != "" && p.Digest != digest {
		m.diags.Add(RuleDigest, c.Arg("digest").Expr.Range(), "Not the module that was pinned",
			"%s has digest %s. If the change is wanted, write that one here.", p.Source, p.Digest)
	}
}

func isDigest(s string) bool {
	digits, ok := strings.CutPrefix(s, "sha256:")
	_, err := hex.DecodeString(digits)
	return ok && err == nil && len(digits) == 64 && digits == strings.ToLower(digits)
}

// object reads a plugin's config, over which a task's can be laid. It may hold
// sensitive values: it goes to the plugin only.
func (s *exprContext) object(a *hcl.Attribute) cty.Value {
	v, ok := s.evaluate(a)
	if !ok || !v.IsWhollyKnown() {
		return cty.NilVal
	}
	v, _ = v.UnmarkDeep()
	if !v.IsNull() && hasFields(v.Type()) {
		return v
	}
	s.diags.Add(RuleType, a.Expr.Range(), "Wrong type", "%q must be an object: { name = value, … }.", a.Name)
	return cty.NilVal
}

// lookUp finds a plugin's module and notes its digest in the definition.
func (m *module) lookUp(p *plugin, at hcl.Range) {
	if scheme, _, remote := strings.Cut(p.Source, "://"); remote {
		lang.NotYet(m.diags, scheme+"://", "the source of a plugin", at)
		return
	}
	p.part, _ = strings.CutPrefix(p.Source, StandardPrefix)
	if p.part == p.Source {
		p.part = ""
	}
	if m.options.Catalog == nil {
		if m.restored != nil {
			p.Digest = m.restored.Plugins[p.Source]
			m.def.Plugins[p.Source] = p.Digest
		}
		return
	}
	found := m.signatureOf(p.Source)
	switch {
	case errors.Is(found.err, fs.ErrNotExist) && m.restored != nil:
		m.diags.Add(RulePlugin, at, "No such module", "%s, which is %s in the recorded definition, is not stored here any more.", p.Source, m.restored.Plugins[p.Source])
		return
	case errors.Is(found.err, fs.ErrNotExist) && p.part != "":
		m.diags.Add(RulePlugin, at, "No such plugin", "There is no standard plugin %q.%s", p.Source, diag.DidYouMean(p.part, StandardPrefix, m.options.Standard.Names))
		return
	case errors.Is(found.err, fs.ErrNotExist):
		m.diags.Add(RulePlugin, at, "No such module", "There is no file %s, as seen from the directory of this flow file: build the plugin, or correct the path.", p.Source)
		return
	case found.err != nil:
		m.diags.Add(RulePlugin, at, "Plugin cannot be used", "%s.", plainly(found.err))
		return
	}
	p.signature, p.Digest = found, found.Digest
	m.def.Plugins[p.Source] = found.Digest
}

// StandardPrefix begins the sources of standard plugins.
const StandardPrefix = "std/"

func (m *module) signatureOf(source string) *signature {
	if part, ok := strings.CutPrefix(source, StandardPrefix); ok {
		return m.standardSignature(source, part)
	}
	file := filepath.FromSlash(source)
	if !filepath.IsAbs(file) {
		file = filepath.Join(m.src.folder, file)
	}
	key := "path " + file
	if m.restored != nil {
		key = "digest " + m.restored.Plugins[source]
	}
	if found := m.signatures[key]; found != nil {
		return found
	}
	found := new(signature)
	if m.restored != nil {
		found.Signature, found.err = m.options.Catalog.SignatureOf(m.ctx, m.restored.Plugins[source])
	} else {
		found.Signature, found.err = m.options.Catalog.Signature(m.ctx, file)
	}
	m.signatures[key] = found
	return found
}

// standardSignature is the signature of a part of a module.
func (m *module) standardSignature(source, part string) *signature {
	key := "standard " + part + m.restoredDigest(source)
	if found := m.signatures[key]; found != nil {
		return found
	}
	found := new(signature)
	switch {
	case m.restored != nil:
		found.Signature, found.err = m.options.Catalog.SignatureOf(m.ctx, m.restored.Plugins[source])
	case m.options.Standard.Signature == nil:
		found.err = fs.ErrNotExist
	default:
		found.Signature, found.err = m.options.Standard.Signature(m.ctx, part)
	}
	found.Signature = PartOf(found.Signature, part)
	m.signatures[key] = found
	return found
}

// PartOf is the signature of a standard plugin, of that of the module that it is a part of. The
// module has each of its functions under the name of the part, a dot and the function's own.
func PartOf(module run.Signature, part string) run.Signature {
	var own []run.FunctionSignature
	for _, f := range module.Functions {
		if name, ok := strings.CutPrefix(f.Name, part+"."); ok {
			f.Name = name
			own = append(own, f)
		}
	}
	module.Functions = own
	return module
}

// restoredDigest is the digest of a source in a recorded definition, "" for one of files.
func (m *module) restoredDigest(source string) string {
	if m.restored == nil {
		return ""
	}
	return " " + m.restored.Plugins[source]
}

// plugin gives the module that a task names, by reference or by path. It is nil
// when that has been reported as wrong.
func (s *exprContext) plugin(a *hcl.Attribute) *plugin {
	if a == nil {
		return nil
	}
	if p, ok := s.jsonReference(a); ok {
		return p
	}
	v, ok := s.value(a, cty.DynamicPseudoType)
	if !ok {
		return nil
	}
	switch {
	case v.Type() == pluginType:
		return v.EncapsulatedValue().(*plugin)
	case v.Type() == cty.String && v.AsString() != "":
		p := &plugin{Plugin: Plugin{Source: v.AsString()}, config: cty.NilVal}
		s.module.lookUp(p, a.Expr.Range())
		return p
	}
	s.diags.Add(RuleType, a.Expr.Range(), "Not a plugin", "\"plugin\" takes a reference, plugin.NAME, or the path of a module as a string.")
	return nil
}

// jsonReference reads the JSON syntax's way to write a reference as a string,
// "plugin.NAME".
func (s *exprContext) jsonReference(a *hcl.Attribute) (*plugin, bool) {
	if !hcljson.IsJSONExpression(a.Expr) {
		return nil, false
	}
	t, diags := hcl.AbsTraversalForExpr(a.Expr)
	if diags.HasErrors() || t.RootName() != "plugin" || len(t) != 2 {
		return nil, false
	}
	name, at, _ := syntax.Step(t, 1)
	p := s.module.plugins[name]
	if p == nil {
		b := &binding{exprContext: s, x: new(expression)}
		b.unknownName(rootWord("plugin"), name, at)
	}
	return p, true
}

// chooseFunction finds the function that a task calls.
func (s *exprContext) chooseFunction(p *plugin, a *hcl.Attribute, at hcl.Range) string {
	chosen, given := s.text(a)
	if p == nil || p.signature == nil {
		return chosen
	}
	var names []string
	for _, f := range p.signature.Functions {
		names = append(names, f.Name)
	}
	if given {
		if slices.Contains(names, chosen) {
			return chosen
		}
		hint := diag.DidYouMean(chosen, "", names)
		if len(names) == 0 {
			hint = " The module is one program without named functions: leave the argument out."
		}
		s.diags.Add(RuleFunction, a.Expr.Range(), "Unknown function", "%s has no function %q.%s", p.Source, chosen, hint)
		return ""
	}
	chosen = p.signature.Default()
	if chosen == "" && len(names) > 0 {
		s.diags.Add(RuleFunction, at, "Which function?", "%s has several functions, and none of them is %q: name one with function = \"…\". There is %s.",
			p.Source, run.MainFunction, diag.Join(names, "and"))
	}
	return chosen
}
