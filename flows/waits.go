package flows

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/flowhost/flowhost/flows/internal/budget"
	"github.com/flowhost/flowhost/flows/internal/jsonschema"
	"github.com/flowhost/flowhost/flows/internal/lang"
	"github.com/flowhost/flowhost/run"
)

// Wait is what a task that calls nothing waits for.
type Wait struct {
	For     WaitFor
	Timeout time.Duration // after which it fails; 0 for never

	value        *expression // of the argument For; nil for a signal
	knownSubject string      // of a subject, what is known at load
}

// WaitFor is what ends a wait.
type WaitFor string

// What waits end with; each is the name of its argument. A signal ends a wait for a
// message, too.
const (
	WaitDuration WaitFor = "duration" // some time
	WaitUntil    WaitFor = "until"    // an instant
	WaitSubject  WaitFor = "subject"  // a message
	WaitApproval WaitFor = "approval" // somebody's decision
	WaitSignal   WaitFor = "signal"   // a signal
)

// Timed reports whether the wait ends by itself.
func (f WaitFor) Timed() bool { return f == WaitDuration || f == WaitUntil }

var waitForms = []WaitFor{WaitDuration, WaitUntil, WaitSubject, WaitApproval, WaitSignal}

// WaitPrefix begins the names of the tasks that are waits: "wait.approval".
const WaitPrefix = "wait."

// Bounds of what a wait may be given.
const (
	maxWait     = 100 * 365 * 24 * time.Hour
	maxSubject  = 255
	maxApproval = 4096
)

// Awaited is what a wait waits for, as evaluated when it starts.
type Awaited struct {
	Due      time.Time // when it ends by itself; zero for never
	Subject  string    // of the message
	Approval string    // what is to be approved
}

// Await evaluates what a wait that starts now waits for. Due may have passed. A
// failure is like those of [Task.When].
func (t *Task) Await(s *Scope, now time.Time) (Awaited, *run.Failure) {
	w := t.Wait
	if w.value == nil {
		return Awaited{}, nil
	}
	v, failure := s.evaluate(w.value, s)
	if failure != nil {
		return Awaited{}, failure
	}
	awaited, fault := w.read(v, now)
	if fault != nil {
		return Awaited{}, reject(w.value.Range(), string(w.For)+": "+fault.detail)
	}
	return awaited, nil
}

// waitFault is why a value cannot be waited for.
type waitFault struct {
	rule            Rule
	summary, detail string
}

// read is what a value of the wait's argument means.
func (w *Wait) read(v cty.Value, now time.Time) (Awaited, *waitFault) {
	if v.ContainsMarked() {
		return Awaited{}, &waitFault{RuleMisplaced, "Sensitive value where it would be shown", "what is waited for is shown, and the value is sensitive."}
	}
	v, err := convert.Convert(v, cty.String)
	if err != nil || v.IsNull() || !v.IsKnown() {
		return Awaited{}, &waitFault{RuleType, "Wrong type", "a string is required."}
	}
	text := v.AsString()
	switch w.For {
	case WaitDuration:
		d, err := time.ParseDuration(text)
		if err != nil || d < 0 || d > maxWait {
			return Awaited{}, &waitFault{RuleValue, "Not a duration",
				fmt.Sprintf("%q is not a duration with a unit, such as \"30s\", \"5m\" or \"1h30m\", of 100 years at most.", clip(text))}
		}
		return Awaited{Due: now.Add(d)}, nil
	case WaitUntil:
		at, ok := parseInstant(text)
		if !ok {
			return Awaited{}, &waitFault{RuleValue, "Not a time", fmt.Sprintf(notAnInstant, clip(text))}
		}
		return Awaited{Due: at.UTC()}, nil
	case WaitSubject:
		if !isSubject(text) || strings.ContainsAny(text, "*>") || strings.ContainsFunc(text, unprintable) || len(text) > maxSubject {
			return Awaited{}, &waitFault{RuleSubject, "Not a subject",
				fmt.Sprintf("%q is not the subject of a message: tokens are joined by dots, hold no spaces and no * or >, and are %d bytes at most together.", clip(text), maxSubject)}
		}
		if why := run.ReservedSubject(text); why != "" {
			return Awaited{}, &waitFault{RuleReserved, "Reserved subject", fmt.Sprintf("a flow cannot listen to %q: %s.", clip(text), why)}
		}
		return Awaited{Subject: text}, nil
	}
	if text == "" || len(text) > maxApproval {
		return Awaited{}, &waitFault{RuleValue, "Not a string to be shown", fmt.Sprintf("what is to be approved is described in 1 to %d bytes.", maxApproval)}
	}
	return Awaited{Approval: text}, nil
}

func unprintable(r rune) bool {
	return unicode.IsSpace(r) || unicode.IsControl(r) || r == utf8.RuneError
}

// clip bounds what a message quotes.
func clip(s string) string {
	if len(s) > 80 {
		return strings.ToValidUTF8(s[:80], "") + "…"
	}
	return s
}

// isWait reports whether the task is a wait.
func (t *Task) isWait() bool { return t.Wait != nil }

// declareWait notes a wait of a part of the flow.
func (d *flowDecoder) declareWait(b *hcl.Block, of *Section, in *Group) *Task {
	name, ok := d.declareName(b)
	if !ok {
		return nil
	}
	t := &Task{
		Name: WaitPrefix + name, Range: b.DefRange, RunOn: RunOnSuccess, Wait: new(Wait), Group: in,
		part: of.Part, input: new(inputs), config: new(inputs),
	}
	t.output = d.settles(t.Name, rootWord("wait"), name)
	return d.declared(t, b, of)
}

func (s *exprContext) decodeWait(t *Task, b *hcl.Block) {
	s, c := s.decodeAt(b, waitSchema)
	t.Description, _ = s.text(c.Arg("description"))
	if word, ok := s.word(c.Arg("run_on")); ok {
		t.RunOn = RunOn(word)
	}
	t.Wait.Timeout, _ = s.duration(c.Arg("timeout"))
	t.when = s.condition(c.Arg("when"))
	t.after = s.after(c.Arg("after"))
	form := s.waitForm(c, t.Range)
	if form == nil {
		return
	}
	t.Wait.For = WaitFor(form.Name)
	if t.Wait.For == WaitSignal {
		return
	}
	x := s.late(form)
	if x == nil {
		return
	}
	t.Wait.value = x
	switch {
	case x.constant != cty.NilVal:
		awaited, fault := t.Wait.read(x.constant, time.Time{})
		if fault != nil {
			s.diags.Add(fault.rule, form.Expr.Range(), fault.summary, "%q: %s", form.Name, fault.detail)
		}
		t.Wait.knownSubject = awaited.Subject
	case t.Wait.For == WaitSubject:
		t.Wait.knownSubject = s.knownSubject(x)
		if why := run.ReservedSubject(t.Wait.knownSubject); why != "" {
			s.diags.Add(RuleReserved, form.Expr.Range(), "Reserved subject", "A flow cannot listen to subjects like %q: %s.", t.Wait.knownSubject, why)
		}
	}
}

// waitForm is the argument that states what ends the wait.
func (s *exprContext) waitForm(c *lang.Content, at hcl.Range) *hcl.Attribute {
	signal, stated := s.flag(c.Arg(string(WaitSignal)))
	if !stated && c.Arg(string(WaitSignal)) != nil {
		return nil // wrong, and reported
	}
	var form *hcl.Attribute
	for _, name := range waitForms {
		a := c.Arg(string(name))
		switch {
		case a == nil || name == WaitSignal && !signal:
		case form != nil:
			s.diags.Add(RuleConflict, a.NameRange, form.Name+" and "+a.Name, "A wait takes exactly one of duration, until, subject, approval and signal = true: write a second wait for the other.")
			return nil
		default:
			form = a
		}
	}
	if form == nil {
		s.diags.Add(RuleMissing, at, "Wait for what?", "A wait needs duration = \"…\", until = \"…\", subject = \"…\", approval = \"…\" or signal = true.")
	}
	return form
}

// checkWait compares the types of what a wait's expressions give.
func (d *flowDecoder) checkWait(t *Task) {
	s := *d.context
	s.part = t.part
	types := s.within(waitSchema).typing()
	types.condition(t.when)
	types.reader = &reader{task: t}
	x := t.Wait.value
	switch {
	case x == nil || x.constant != cty.NilVal:
	case t.Wait.For.Timed():
		types.check(x.Expression, jsonschema.OfKind(jsonschema.String), string(t.Wait.For))
	default:
		types.check(x.Expression, jsonschema.OfKind(jsonschema.String|jsonschema.Number|jsonschema.Bool), string(t.Wait.For))
	}
}

// waitAttributes are what a reference to a wait can end in.
var waitAttributes = []string{"duration", "error", "payload", "state"}

// leaf is the task or wait of a name after its root, or nil.
func (d *flowDecoder) leaf(word *root, name string) *Task {
	if word.bit == rootWait {
		return d.tasks[WaitPrefix+name]
	}
	if t := d.tasks[name]; t != nil && !t.isWait() {
		return t
	}
	return nil
}

// leaves are the names of the flow's tasks, or of its waits.
func (d *flowDecoder) leaves(word *root) []string {
	var names []string
	for name := range d.tasks {
		if short, wait := strings.CutPrefix(name, WaitPrefix); wait == (word.bit == rootWait) {
			names = append(names, short)
		}
	}
	return names
}

// referred spells how expressions refer to a task or wait.
func referred(name string) string {
	if strings.HasPrefix(name, WaitPrefix) {
		return name
	}
	return "task." + name
}

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
