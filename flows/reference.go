package flows

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/flowhost/flowhost/flows/internal/budget"
	"github.com/flowhost/flowhost/flows/internal/diag"
	"github.com/flowhost/flowhost/flows/internal/lang"
	"github.com/flowhost/flowhost/flows/internal/syntax"
)

// bind checks every reference of an expression and notes what it needs.
func (s *exprContext) bind(e hcl.Expression, argument string, at lang.Phase) (*expression, bool) {
	from := s.diags.Count()
	b := &binding{exprContext: s, x: &expression{Expression: e, argument: argument, at: at}, usable: s.usable(at), at: at}
	for _, t := range e.Variables() {
		b.reference(t)
	}
	b.x.Expression = budget.Instrument(e)
	return b.x, !s.diags.Failed(from) && !b.incomplete
}

// typeNames are the names of types in the function convert.
var typeNames = []string{"any", "bool", "number", "string"}

// binding is the check of one expression.
type binding struct {
	*exprContext
	x          *expression
	usable     roots
	at         lang.Phase
	incomplete bool // something it needs is wrong elsewhere
}

func (b *binding) reference(t hcl.Traversal) {
	word := rootWord(t.RootName())
	switch {
	case word == nil && len(t) == 1 && slices.Contains(typeNames, t.RootName()):
		// The second argument of convert; anywhere else evaluation complains.
	case word == nil:
		b.unknownRoot(t)
	case b.usable&word.bit == 0:
		b.misplaced(t, word)
	default:
		b.x.direct |= word.bit
		b.x.roots |= word.bit
		b.named(t, word)
	}
}

// named checks the name after the root.
func (b *binding) named(t hcl.Traversal, word *root) {
	name, at, ok := syntax.Step(t, 1)
	switch {
	case !ok && word.has != nil:
		b.diags.Add(RuleReference, t.SourceRange(), "An attribute is missing", "%s is no value by itself: write %s.ATTRIBUTE, where it is one of %s.", word.name, word.name, diag.Join(word.has, "and"))
	case !ok:
		b.diags.Add(RuleReference, t.SourceRange(), "A name is missing",
			"%s alone is no value: write %s.NAME, with a name that is known without evaluating anything.", word.name, word.name)
	case word.has != nil:
		if b.attribute(word.name, name, at, word.attributes(b.at)) && word.bit&runRoots != 0 {
			b.x.addRef(ref{root: word, name: name})
		}
	case word.bit&settledRoots != 0:
		b.settled(t, word, name, at)
	case word.bit == rootLocal:
		b.local(t, name, at)
	case !b.declares(word, name):
		b.unknownName(word, name, at)
	case word.bit == rootParam:
		b.x.addRef(ref{root: word, name: name})
	}
}

// declares reports whether a name after a root exists here.
func (b *binding) declares(word *root, name string) bool {
	switch word.bit {
	case rootVar:
		return b.module.variables[name] != nil
	case rootPlugin:
		return b.module.plugins[name] != nil
	case rootLimit:
		return b.module.limitBlocks[name] != nil
	case rootConnection:
		return b.module.reach.connections[name] != nil || b.module.options.Operator.connection(name) != nil
	case rootSecret:
		return b.module.reach.secrets[name] != nil || b.module.options.Operator.secret(name) != nil
	case rootLocal:
		return b.module.locals[name] != nil || b.decoder != nil && b.decoder.locals[name] != nil
	case rootParam:
		return b.decoder.params[name] != nil
	case rootTask, rootWait:
		return b.decoder.leaf(word, name) != nil
	case rootGroup:
		return b.decoder.groups[name] != nil
	}
	return false
}

// declaredNames are the names after a root that exist here.
func (b *binding) declaredNames(word *root) []string {
	switch word.bit {
	case rootVar:
		return keys(b.module.variables)
	case rootPlugin:
		return keys(b.module.plugins)
	case rootLimit:
		return keys(b.module.limitBlocks)
	case rootConnection:
		return append(keys(b.module.reach.connections), b.module.options.Operator.connectionNames()...)
	case rootSecret:
		return keys(b.module.reach.secrets)
	case rootLocal:
		names := keys(b.module.locals)
		if b.decoder != nil {
			names = append(names, keys(b.decoder.locals)...)
		}
		return names
	case rootParam:
		return keys(b.decoder.params)
	case rootTask, rootWait:
		return b.decoder.leaves(word)
	case rootGroup:
		return keys(b.decoder.groups)
	}
	return nil
}

func (b *binding) unknownName(word *root, name string, at hcl.Range) {
	b.incomplete = true
	if b.module.broken && word.bit&(rootVar|rootLocal|rootPlugin|rootLimit|rootConnection|rootSecret) != 0 {
		return // it may be declared in the file that could not be read
	}
	hint := ""
	if b.diags.MayCompare(0) {
		hint = b.diags.Guess(name, word.name+".", slices.Values(b.declaredNames(word)))
	}
	if hint == "" {
		hint = " Declare it in a " + cmp.Or(declaredIn[word.bit], word.name) + " block."
	}
	if other := b.otherwise(word, name); other != "" {
		hint = " It is a " + other + ": write " + other + "." + name + "."
	} else if other := b.elsewhere(word, name); other != "" {
		hint = " It exists in flow \"" + other + "\", and a flow sees only what is its own."
	} else if word.bit == rootConnection && b.module.options.Operator == nil && !strings.Contains(hint, "Did you mean") {
		hint += " No settings were read: if flowhost.hcl declares it, name the directory that has this file."
	}
	b.diags.Add(RuleUnknownName, at, "Unknown "+word.name, "There is no %s.%s here.%s", word.name, name, hint)
}

// declaredIn are the blocks that are not called as references to what they declare.
var declaredIn = map[roots]string{rootVar: "variable", rootLocal: "locals"}

// otherwise is the kind of what the flow has by that name, where references to tasks
// and groups have taken one for the other.
func (b *binding) otherwise(word *root, name string) string {
	for _, r := range rootWords {
		if word.bit&settledRoots != 0 && r.bit&settledRoots != 0 && r.bit != word.bit && b.declares(&r, name) {
			return r.name
		}
	}
	return ""
}

// elsewhere is another flow of the module that has the name, among as many as are
// still to be looked at.
func (b *binding) elsewhere(word *root, name string) string {
	if !b.diags.MayCompare(len(b.module.decoders)) {
		return ""
	}
	for _, other := range keys(b.module.decoders) {
		d := b.module.decoders[other]
		has := false
		switch {
		case d == b.decoder:
		case word.bit == rootTask || word.bit == rootWait:
			has = d.leaf(word, name) != nil
		case word.bit == rootGroup:
			has = d.groups[name] != nil
		case word.bit == rootParam:
			has = d.params[name] != nil
		case word.bit == rootLocal:
			has = d.locals[name] != nil
		}
		if has {
			return other
		}
	}
	return ""
}

func (b *binding) attribute(of, name string, at hcl.Range, has []string) bool {
	if slices.Contains(has, name) {
		return true
	}
	b.diags.Add(RuleUnknownAttribute, at, "Unknown attribute", "%s has no attribute %q.%s", of, name, diag.DidYouMean(name, of+".", has))
	return false
}

// settledName is the name that runs have for a task, a wait or a group.
func settledName(word *root, name string) string {
	if word.bit == rootTask {
		return name
	}
	return word.name + "." + name
}

// partOf is the part of the flow in which a task, a wait or a group is declared.
func (d *flowDecoder) partOf(word *root, name string) (Part, bool) {
	if word.bit == rootGroup {
		if g := d.groups[name]; g != nil {
			return g.part, true
		}
		return "", false
	}
	if t := d.leaf(word, name); t != nil {
		return t.part, true
	}
	return "", false
}

// attributesOf are those that a reference to a task, a wait or a group can end in,
// that of its result and what the result is.
func attributesOf(word *root) (has []string, result, what string) {
	switch word.bit {
	case rootGroup:
		return groupAttributes, "output", "what it returned is in its output"
	case rootWait:
		return waitAttributes, "payload", "what ended it is in its payload"
	}
	return taskAttributes, "output", "what it returned is in its output"
}

// settled checks a reference to a task, a wait or a group and notes the edge.
func (b *binding) settled(t hcl.Traversal, word *root, name string, at hcl.Range) {
	part, declared := b.decoder.partOf(word, name)
	full := word.name + "." + name
	switch {
	case !declared:
		b.unknownName(word, name, at)
		return
	case !b.part.sees(part):
		b.diags.Add(RuleMisplaced, at, diag.Sentence(word.name)+" of "+string(part),
			"%s runs in %s, %s", full, part, onlyThere(part, b.part))
		return
	}
	attribute, where, ok := syntax.Step(t, 2)
	has, result, what := attributesOf(word)
	switch {
	case !ok && word.bit == rootWait:
		b.diags.Add(RuleReference, t.SourceRange(), "An attribute is missing", "%s is a wait: write %s.payload for what ended it.", full, full)
	case !ok:
		b.diags.Add(RuleReference, t.SourceRange(), "An attribute is missing", "%s is a %s: write %s.output for its result.", full, word.name, full)
	case attribute == "output" && word.bit == rootWait:
		b.diags.Add(RuleUnknownAttribute, where, "Unknown attribute", "A wait has no output: what ended it is %s.payload.", full)
	case word.bit == rootGroup && b.decoder.groups[name].member(attribute) != "":
		b.diags.Add(RuleUnknownAttribute, where, "Unknown attribute", "Members of a group are referred to by their own names: write %s.", b.decoder.groups[name].member(attribute))
	case word.bit == rootGroup && slices.Contains(taskAttributes, attribute) && !slices.Contains(has, attribute):
		b.diags.Add(RuleUnknownAttribute, where, "Unknown attribute", "Only tasks have %s: a group has %s.", attribute, diag.Join(has, "and"))
	case slices.Contains(has, attribute) || diag.Nearest(attribute, has) != "":
		b.attribute(full, attribute, where, has)
	default:
		b.diags.Add(RuleUnknownAttribute, where, "Unknown attribute",
			"A %s has %s; %s: write %s.%s.%s.", word.name, diag.Join(has, "and"), what, full, result, attribute)
	}
	w := b.decoder.outputs[settledName(word, name)]
	w.attribute = attribute
	b.x.addRef(w)
	b.x.dependencies = append(b.x.dependencies, dependency{task: settledName(word, name), at: t.SourceRange()})
}

func onlyThere(target, from Part) string {
	if from == PartMain || from == "" {
		return "after the main tasks have ended: only the tasks there can refer to it."
	}
	return fmt.Sprintf("and never before the tasks of %s.", from)
}

// local checks a reference to a local and carries on what that one refers to.
func (b *binding) local(t hcl.Traversal, name string, at hcl.Range) {
	l := b.module.locals[name]
	if b.decoder != nil && b.decoder.locals[name] != nil {
		l = b.decoder.locals[name]
	}
	if l == nil {
		b.unknownName(rootWord("local"), name, at)
		return
	}
	if !b.module.resolve(l) {
		b.incomplete = true
		return
	}
	if extra := l.expr.roots &^ b.usable; extra != 0 {
		b.localMisplaced(t, l, extra)
		return
	}
	if !slices.Contains(b.x.locals, l) {
		b.x.locals = append(b.x.locals, l)
	}
	b.x.roots |= l.expr.roots
	for _, u := range l.expr.dependencies {
		b.x.dependencies = append(b.x.dependencies, dependency{task: u.task, at: t.SourceRange(), via: "local." + name})
	}
}

func (b *binding) localMisplaced(t hcl.Traversal, l *local, extra roots) {
	if b.at == lang.Retry {
		b.diags.Add(RuleMisplaced, t.SourceRange(), "Not the same for all tasks",
			"local.%s (%s) uses %s, and this holds for every task that inherits it. It may use %s.", l.name, diag.Place(l.at), extra.names(), b.usable.names())
		return
	}
	b.diags.Add(RuleRunValue, t.SourceRange(), "Run value in an argument that is fixed earlier",
		"local.%s (%s) uses %s, and %q is decided before that exists. It may use %s.",
		l.name, diag.Place(l.at), extra.names(), b.x.argument, b.usable.names())
}

// misplaced reports a root that this argument cannot use.
func (b *binding) misplaced(t hcl.Traversal, word *root) {
	at, argument := t.SourceRange(), b.x.argument
	switch {
	case word.bit == rootLimit:
		b.diags.Add(RuleMisplaced, at, "A limit is not a value", "limit.NAME can be used only as the argument \"limit\" of a task.")
	case word.bit == rootConnection:
		b.diags.Add(RuleMisplaced, at, "A connection is not a value", "connection.NAME can be used only in the list \"connections\" of a grant block: grant { connections = [connection.NAME] }.")
	case word.bit == rootSecret:
		b.diags.Add(RuleMisplaced, at, "A secret is not a value",
			"The host resolves secret.NAME right before it is used, and expressions never see it. It can be used, alone, in the arguments of a connection block and in grant { secrets = { NAME = secret.NAME } }.")
	case b.usable == 0:
		b.diags.Add(RuleMisplaced, at, "A constant is required", "%q must be written out: it cannot refer to %s.", argument, word.name)
	case word.bit == rootPlugin:
		b.diags.Add(RuleMisplaced, at, "A plugin is not a value", "plugin.NAME can be used only as the argument \"plugin\" of a task.")
	case word.bit == rootEach && b.decoder != nil && b.at >= lang.Run:
		b.diags.Add(RuleMisplaced, at, "No item here", "%s", b.noItem())
	case word.bit == rootError:
		b.diags.Add(RuleMisplaced, at, "No error here", "error.* is known only to the tasks of on_failure and finally, and to \"when\" in a retry block.")
	case b.at == lang.Retry:
		b.diags.Add(RuleMisplaced, at, "Not the same for all tasks",
			"%q in a defaults block holds for every task that inherits it: it cannot refer to %s. Use %s here.", argument, word.name, b.usable.names())
	case b.at <= lang.LoadPlugin:
		b.diags.Add(RuleRunValue, at, "Run value in a deploy-time argument",
			"%q is fixed when the flow is loaded, and %s.* exists only in a run. Use %s here.", argument, word.name, b.usable.names())
	default:
		b.diags.Add(RuleRunValue, at, "Run value before the run",
			"%q is evaluated when the trigger fires, before there is a run: %s.* does not exist yet. Use %s here.", argument, word.name, b.usable.names())
	}
}

// noItem explains why there is no item of a fan-out.
func (b *binding) noItem() string {
	switch b.x.argument {
	case "for_each":
		return "each.* is an item of what for_each gives, so it does not exist before."
	case "when":
		if b.schema == taskSchema && b.at == lang.Run {
			return "\"when\" decides for the task as a whole, before there are items. To leave items out, filter them: for_each = [for x in LIST : x if …]."
		}
	}
	return "each.* is known only in a task with for_each: in its input, its config and \"when\" of its retry block."
}

// unknownRoot reports a reference that begins with no known word.
func (b *binding) unknownRoot(t hcl.Traversal) {
	name, at := t.RootName(), t.SourceRange()
	if name == strings.ToUpper(name) && strings.ToLower(name) != name {
		b.diags.Add(RuleEnvironment, at, "Environment variables are not visible",
			"Flow files do not see the environment. Declare variable %q and write var.%s, or write $${%s} for the string itself.",
			strings.ToLower(name), strings.ToLower(name), name)
		return
	}
	if full := b.qualified(name); full != "" {
		b.diags.Add(RuleUnknownRoot, at, "Incomplete reference", "There is no %q by itself. Did you mean %s?", name, full)
		return
	}
	var usable []string
	for _, r := range rootWords {
		if b.usable&r.bit != 0 {
			usable = append(usable, r.name)
		}
	}
	hint := diag.DidYouMean(name, "", usable)
	if len(usable) == 0 {
		hint = " The value must be written out; a string needs quotes."
	} else if diag.Nearest(name, usable) == "" {
		hint = " References begin with " + diag.Join(usable, "or") + "; a string needs quotes."
	}
	b.diags.Add(RuleUnknownRoot, at, "Unknown reference", "There is no %q.%s", name, hint)
}

// qualified is the full form of a name that was written without its root.
func (b *binding) qualified(name string) string {
	for _, r := range rootWords {
		if b.usable&r.bit == 0 || (b.decoder == nil && r.bit&(rootParam|settledRoots) != 0) {
			continue
		}
		if b.declares(&r, name) {
			if r.bit&settledRoots != 0 {
				_, result, _ := attributesOf(&r)
				return r.name + "." + name + "." + result
			}
			return r.name + "." + name
		}
	}
	return ""
}
