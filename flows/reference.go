package flows

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
)

// bind checks every reference of an expression and notes what it needs.
func (s *site) bind(e hcl.Expression, argument string, at moment) (*expression, bool) {
	from := len(s.diags)
	b := &binding{site: s, x: &expression{Expression: e, argument: argument, at: at}, usable: s.usable(at), at: at}
	for _, t := range e.Variables() {
		b.reference(t)
	}
	b.x.Expression = countingNodes(e)
	return b.x, !s.failed(from) && !b.incomplete
}

// typeNames are the names that stand for types in the function convert.
var typeNames = []string{"any", "bool", "number", "string"}

// binding is the check of one expression.
type binding struct {
	*site
	x          *expression
	usable     roots
	at         moment
	incomplete bool // something it needs is wrong elsewhere
}

func (b *binding) reference(t hcl.Traversal) {
	word := rootWord(t.RootName())
	switch {
	case word == nil && len(t) == 1 && slices.Contains(typeNames, t.RootName()):
		// The second argument of convert; anywhere else evaluation complains.
	case word == nil:
		b.unknownRoot(t)
	case word.later:
		b.later(word.name, "a reference", t.SourceRange())
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
	name, at, ok := step(t, 1)
	switch {
	case !ok && word.has != nil:
		b.add(RuleReference, t.SourceRange(), "An attribute is missing", "%s is no value by itself: write %s.ATTRIBUTE, where it is one of %s.", word.name, word.name, join(word.has, "and"))
	case !ok:
		b.add(RuleReference, t.SourceRange(), "A name is missing",
			"%s stands for all of its kind: write %s.NAME, with a name that is known without evaluating anything.", word.name, word.name)
	case word.has != nil:
		if b.attribute(word.name, word.name, name, at, word.attributes(b.at)) && word.bit&runRoots != 0 {
			b.x.want(wanted{root: word, name: name})
		}
	case word.bit == rootTask:
		b.task(t, name, at)
	case word.bit == rootWait:
		b.wait(t, name, at)
	case word.bit == rootLocal:
		b.local(t, name, at)
	case !b.declares(word, name):
		b.unknownName(word, name, at)
	case word.bit == rootParam:
		b.x.want(wanted{root: word, name: name})
	}
}

// declares reports whether a name after a root exists here.
func (b *binding) declares(word *root, name string) bool {
	switch word.bit {
	case rootVar:
		return b.variables[name] != nil
	case rootPlugin:
		return b.plugins[name] != nil
	case rootLocal:
		return b.locals[name] != nil || b.draft != nil && b.draft.locals[name] != nil
	case rootParam:
		return b.draft.params[name] != nil
	case rootTask, rootWait:
		return b.draft.leaf(word, name) != nil
	}
	return false
}

// declaredNames are the names after a root that exist here.
func (b *binding) declaredNames(word *root) []string {
	switch word.bit {
	case rootVar:
		return keys(b.variables)
	case rootPlugin:
		return keys(b.plugins)
	case rootLocal:
		names := keys(b.locals)
		if b.draft != nil {
			names = append(names, keys(b.draft.locals)...)
		}
		return names
	case rootParam:
		return keys(b.draft.params)
	case rootTask, rootWait:
		return b.draft.leaves(word)
	}
	return nil
}

func (b *binding) unknownName(word *root, name string, at hcl.Range) {
	b.incomplete = true
	if b.broken && word.bit&(rootVar|rootLocal|rootPlugin) != 0 {
		return // it may be declared in the file that could not be read
	}
	declare := map[roots]string{rootVar: "a variable block", rootLocal: "a locals block", rootPlugin: "a plugin block", rootParam: "a param block", rootTask: "a task block", rootWait: "a wait block"}
	hint := ""
	if b.guessed <= maxGuessed {
		hint = b.guess(name, word.name+".", b.declaredNames(word))
	}
	if hint == "" {
		hint = " Declare it in " + declare[word.bit] + "."
	}
	if other := b.namesake(word, name); other != "" {
		hint = " Did you mean " + other + "?"
	}
	if other := b.elsewhere(word, name); other != "" {
		hint = " It exists in flow \"" + other + "\", and a flow sees only what is its own."
	}
	b.add(RuleUnknownName, at, "Unknown "+word.name, "There is no %s.%s here.%s", word.name, name, hint)
}

// elsewhere is another flow of the module that has the name.
func (b *binding) elsewhere(word *root, name string) string {
	for _, other := range keys(b.drafts) {
		d := b.drafts[other]
		has := false
		switch {
		case d == b.draft:
		case word.bit&leafRoots != 0:
			has = d.leaf(word, name) != nil
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

func (b *binding) attribute(of, what, name string, at hcl.Range, has []string) bool {
	switch {
	case slices.Contains(has, name):
		return true
	case slices.Contains(laterAttributes[what], name):
		b.later(of+"."+name, "a reference", at)
	default:
		b.add(RuleUnknownAttribute, at, "Unknown attribute", "%s has no attribute %q.%s", of, name, didYouMean(name, of+".", has))
	}
	return false
}

// task checks a reference to a task and notes the edge.
func (b *binding) task(t hcl.Traversal, name string, at hcl.Range) {
	target := b.draft.leaf(rootWord("task"), name)
	switch {
	case target == nil:
		b.unknownName(rootWord("task"), name, at)
		return
	case !b.part.sees(target.part):
		b.add(RuleMisplaced, at, "Task of "+string(target.part),
			"task.%s runs in %s, %s", name, target.part, onlyThere(target.part, b.part))
		return
	}
	attribute, where, ok := step(t, 2)
	switch {
	case !ok:
		b.add(RuleReference, t.SourceRange(), "An attribute is missing", "task.%s is a task: write task.%s.output for its result.", name, name)
	case slices.Contains(taskAttributes, attribute) || slices.Contains(laterAttributes["task"], attribute):
		b.attribute("task."+name, "task", attribute, where, taskAttributes)
	case nearest(attribute, taskAttributes) != "":
		b.attribute("task."+name, "task", attribute, where, taskAttributes)
	default:
		b.add(RuleUnknownAttribute, where, "Unknown attribute",
			"A task has %s; what it returned is in its output: write task.%s.output.%s.", join(taskAttributes, "and"), name, attribute)
	}
	b.x.want(wanted{root: rootWord("task"), name: name, attribute: attribute, number: target.number})
	b.x.needs = append(b.x.needs, use{task: name, at: t.SourceRange()})
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
	if b.draft != nil && b.draft.locals[name] != nil {
		l = b.draft.locals[name]
	}
	if l == nil {
		b.unknownName(rootWord("local"), name, at)
		return
	}
	if !b.resolve(l) {
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
	for _, u := range l.expr.needs {
		b.x.needs = append(b.x.needs, use{task: u.task, at: t.SourceRange(), via: "local." + name})
	}
}

func (b *binding) localMisplaced(t hcl.Traversal, l *local, extra roots) {
	if b.at == retrying {
		b.add(RuleMisplaced, t.SourceRange(), "Not the same for all tasks",
			"local.%s (%s) uses %s, and this holds for every task that inherits it. It may use %s.", l.name, place(l.at), extra.names(), b.usable.names())
		return
	}
	b.add(RuleRunValue, t.SourceRange(), "Run value in an argument that is fixed earlier",
		"local.%s (%s) uses %s, and %q is decided before that exists. It may use %s.",
		l.name, place(l.at), extra.names(), b.x.argument, b.usable.names())
}

// misplaced reports a root that this argument cannot use.
func (b *binding) misplaced(t hcl.Traversal, word *root) {
	at, argument := t.SourceRange(), b.x.argument
	switch {
	case b.usable == 0:
		b.add(RuleMisplaced, at, "A constant is required", "%q must be written out: it cannot refer to %s.", argument, word.name)
	case word.bit == rootPlugin:
		b.add(RuleMisplaced, at, "A plugin is not a value", "plugin.NAME can be used only as the argument \"plugin\" of a task.")
	case word.bit == rootError:
		b.add(RuleMisplaced, at, "No error here", "error.* is known only to the tasks of on_failure and finally, and to \"when\" in a retry block.")
	case b.at == retrying:
		b.add(RuleMisplaced, at, "Not the same for all tasks",
			"%q in a defaults block holds for every task that inherits it: it cannot refer to %s. Use %s here.", argument, word.name, b.usable.names())
	case b.at <= pluginRef:
		b.add(RuleRunValue, at, "Run value in a deploy-time argument",
			"%q is fixed when the flow is loaded, and %s.* exists only in a run. Use %s here.", argument, word.name, b.usable.names())
	default:
		b.add(RuleRunValue, at, "Run value before the run",
			"%q is evaluated when the trigger fires, before there is a run: %s.* does not exist yet. Use %s here.", argument, word.name, b.usable.names())
	}
}

// unknownRoot reports a reference that begins with no known word.
func (b *binding) unknownRoot(t hcl.Traversal) {
	name, at := t.RootName(), t.SourceRange()
	if name == strings.ToUpper(name) && strings.ToLower(name) != name {
		b.add(RuleEnvironment, at, "Environment variables are not visible",
			"Flow files do not see the environment. Declare variable %q and write var.%s, or write $${%s} for the text itself.",
			strings.ToLower(name), strings.ToLower(name), name)
		return
	}
	if full := b.qualified(name); full != "" {
		b.add(RuleUnknownRoot, at, "Incomplete reference", "There is no %q by itself. Did you mean %s?", name, full)
		return
	}
	var usable []string
	for _, r := range rootWords {
		if b.usable&r.bit != 0 {
			usable = append(usable, r.name)
		}
	}
	hint := didYouMean(name, "", usable)
	if len(usable) == 0 {
		hint = " The value must be written out; a text needs quotes."
	} else if nearest(name, usable) == "" {
		hint = " References begin with " + join(usable, "or") + "; a text needs quotes."
	}
	b.add(RuleUnknownRoot, at, "Unknown reference", "There is no %q.%s", name, hint)
}

// qualified is the full form of a name that was written without its root.
func (b *binding) qualified(name string) string {
	for _, r := range rootWords {
		if b.usable&r.bit == 0 || (b.draft == nil && r.bit&(rootParam|leafRoots) != 0) {
			continue
		}
		if b.declares(&r, name) {
			if r.bit == rootTask {
				return "task." + name + ".output"
			}
			if r.bit == rootWait {
				return "wait." + name + ".payload"
			}
			return r.name + "." + name
		}
	}
	return ""
}
