package flows

import (
	"encoding/json"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/flowhost/flowhost/flows/internal/diag"
	"github.com/flowhost/flowhost/flows/internal/lang"
)

// decodeTests decodes the tests of one file.
func (m *module) decodeTests(file *lang.Content) []*Test {
	var tests []*Test
	if m.tests == nil {
		m.tests = map[string]hcl.Range{}
	}
	m.checkShared(file)
	for _, b := range file.Blocks["test"] {
		name := b.Labels[0]
		if strings.TrimSpace(name) == "" {
			m.diags.Add(RuleName, b.LabelRanges[0], "Name cannot be used", "A test needs a name: describe in a few words what it shows.")
			continue
		}
		if first, taken := m.tests[name]; taken {
			m.diags.Duplicate("test", name, b.LabelRanges[0], first)
			continue
		}
		m.tests[name] = b.DefRange
		if t := m.decodeTest(b, file); t != nil {
			tests = append(tests, t)
		}
	}
	return tests
}

// decodeTest is nil for a test whose flow is not known.
func (m *module) decodeTest(b *hcl.Block, file *lang.Content) *Test {
	s, c := m.exprContext(nil).decodeAt(b, testSchema)
	d := s.testedFlow(b, c.Arg("flow"))
	if d == nil {
		return nil
	}
	t := &Test{
		Name: b.Labels[0], Range: b.DefRange, Flow: d.flow, At: DefaultTestTime,
		context: s, mocks: map[string]*mock{}, plugins: map[string]*mock{},
	}
	s.testedTrigger(t, d, c)
	if at, ok := (&scheduleDecoder{exprContext: s}).instant(c.Arg("at")); ok {
		t.At = at.UTC()
	}
	t.Until, _ = s.duration(c.Arg("until"))
	if t.Scheduled() && c.Arg("until") == nil {
		m.diags.Add(RuleMissing, b.DefRange, "Missing argument", "A test of a schedule needs the argument \"until\" (%s): write until = \"24h\".", testSchema.Argument("until").About)
	}
	s.testedParams(t, d, c.Arg("params"))
	t.Payload = s.testedJSON(c.Arg("payload"))
	for _, inner := range c.Blocks["mock"] {
		s.decodeMock(t, d, inner)
	}
	for _, inner := range c.Blocks["mock_plugin"] {
		s.decodeMockPlugin(t, inner)
	}
	s.checkMocks(t, d)
	s.shareMocks(t, d, file)
	for _, inner := range answersIn(c) {
		s.decodeAnswer(t, d, inner)
	}
	for _, inner := range c.Blocks["assert"] {
		t.asserts = append(t.asserts, s.decodeAssert(t, d, inner))
	}
	return t
}

// testedFlow finds the flow of a test among those of its directory.
func (s *exprContext) testedFlow(b *hcl.Block, a *hcl.Attribute) *flowDecoder {
	names := keys(s.module.decoders)
	switch name, ok := s.text(a); {
	case ok && s.module.decoders[name] != nil:
		return s.module.decoders[name]
	case ok && !s.module.broken:
		s.diags.Add(RuleUnknownName, a.Expr.Range(), "Unknown name", "There is no flow %q in the directory.%s", name, diag.DidYouMean(name, "", names))
	case a == nil && len(names) == 1:
		return s.module.decoders[names[0]]
	case a == nil && len(names) > 1:
		s.diags.Add(RuleMissing, b.DefRange, "Missing argument", "There are %d flows in the directory: state which one is tested with flow = \"…\".%s", len(names), diag.DidYouMean("", "", names))
	}
	return nil
}

func (s *exprContext) testedTrigger(t *Test, d *flowDecoder, c *lang.Content) {
	a := c.Arg("trigger")
	name, ok := s.text(a)
	if !ok {
		return
	}
	if t.Trigger = d.triggers[name]; t.Trigger == nil {
		s.diags.Add(RuleUnknownName, a.Expr.Range(), "Unknown name", "Flow %q has no trigger %q.%s", t.Flow.Name, name, diag.DidYouMean(name, "", keys(d.triggers)))
		return
	}
	if !t.Trigger.Enabled {
		on := *t.Trigger // a test of it is about what it does once it is on
		on.Enabled = true
		t.Trigger = &on
	}
	for _, other := range []string{"params", "payload"} {
		if a := c.Arg(other); a != nil && t.Scheduled() {
			s.diags.Add(RuleConflict, a.NameRange, "Not for schedules", "Runs of a schedule take no %s: a schedule states params in its trigger block.", other)
		}
	}
}

// testedParams checks values of params as a run does.
func (s *exprContext) testedParams(t *Test, d *flowDecoder, a *hcl.Attribute) {
	if a == nil {
		return
	}
	v := s.object(a)
	if v == cty.NilVal {
		return
	}
	t.Params = map[string]json.RawMessage{}
	values := v.AsValueMap()
	for _, name := range keys(values) {
		p := d.params[name]
		if p == nil {
			s.diags.Add(RuleUnknownName, s.keyRange(a, name), "Unknown name", "Flow %q has no param %q.%s", t.Flow.Name, name, diag.DidYouMean(name, "", keys(d.params)))
			continue
		}
		encoded, err := p.fill(s.module.budget, values[name], true)
		if err != nil {
			s.diags.Add(RuleType, s.keyRange(a, name), "Wrong value of a param", "%s", asSentence(err))
			continue
		}
		t.Params[name] = encoded
	}
}

// keyRange is the place of a name in an object that is written out.
func (s *exprContext) keyRange(a *hcl.Attribute, name string) hcl.Range {
	pairs, _ := hcl.ExprMap(a.Expr)
	for _, pair := range pairs {
		if v, diags := pair.Key.Value(nil); !diags.HasErrors() && v.Type() == cty.String && v.AsString() == name {
			return pair.Key.Range()
		}
	}
	return a.Expr.Range()
}

// testedJSON is a value that is given to runs, nil without one.
func (s *exprContext) testedJSON(a *hcl.Attribute) json.RawMessage {
	if a == nil {
		return nil
	}
	v, ok := s.evaluate(a)
	if !ok || !v.IsWhollyKnown() {
		return nil
	}
	encoded, err := encodeJSON(v)
	if err != nil {
		s.diags.Add(RuleType, a.Expr.Range(), "Not a value for a payload", "%q cannot be given to a run: %s.", a.Name, err)
		return nil
	}
	return encoded
}

// asSentence makes a sentence of an error.
func asSentence(err error) string {
	text := err.Error()
	if text[0] >= 'a' && text[0] <= 'z' {
		text = diag.Sentence(text)
	}
	if !strings.HasSuffix(text, "?") && !strings.HasSuffix(text, ".") {
		text += "."
	}
	return text
}

func (s *exprContext) decodeAssert(t *Test, d *flowDecoder, b *hcl.Block) *assertion {
	s, c := s.decodeAt(b, assertSchema)
	e := &testContext{exprContext: s, roots: assertRoots, tested: d, scheduled: t.Scheduled()}
	a := &assertion{at: b.DefRange, condition: e.bind(c.Arg("condition")), message: e.bind(c.Arg("error_message"))}
	if x := a.condition; x != nil && x.constant != cty.NilVal {
		s.diags.Add(RuleValue, x.Range(), "Condition without effect", "The condition is the same whatever the run does: refer to %s in it.", diag.Join([]string{"run", "runs", "task", "wait"}, "or"))
	}
	return a
}

// The names of tasks and waits in tests are paths: "build" is a task of the tested
// flow, and "release/build" one of the flow that its task "release" runs.

// lookup finds a task or wait and its flow, nil when there is none.
func (m *module) lookup(d *flowDecoder, path string, word *root) (*flowDecoder, *Task) {
	names := strings.Split(path, "/")
	for _, name := range names[:len(names)-1] {
		t := d.leaf(rootWord("task"), name)
		if t == nil || t.Child == nil {
			return nil, nil
		}
		d = m.decoderOf(t.Child)
	}
	return d, d.leaf(word, names[len(names)-1])
}

// named is lookup that reports what is wrong with the path.
func (s *exprContext) named(d *flowDecoder, path string, at hcl.Range, word *root) (*flowDecoder, *Task) {
	if of, t := s.module.lookup(d, path, word); t != nil {
		return of, t
	}
	above := ""
	for rest := path; ; {
		name, after, more := strings.Cut(rest, "/")
		kind := word
		if more {
			kind = rootWord("task")
		}
		t := d.leaf(kind, name)
		switch {
		case t == nil:
			s.diags.Add(RuleUnknownName, at, "Unknown name", "Flow %q has no %s %q.%s", d.flow.Name, kind.name, name, d.instead(kind, name, above))
			return nil, nil
		case t.Child == nil && t.callee() == "flow":
			return nil, nil // which flow, is reported where it is named
		case t.Child == nil:
			s.diags.Add(RuleReference, at, "Not a sub-flow", "Task %q of flow %q runs no flow, so there is nothing in it that could be called %q.", name, d.flow.Name, after)
			return nil, nil
		}
		d, above, rest = s.module.decoderOf(t.Child), above+name+"/", after
	}
}

// instead suggests what could be meant by a name that the flow does not have.
func (d *flowDecoder) instead(word *root, name, above string) string {
	switch {
	case word.bit == rootTask && d.tasks[WaitPrefix+strings.TrimPrefix(name, WaitPrefix)] != nil:
		return " It is a wait: these are not mocked, virtual time ends them, or a signal or approve block."
	case word.bit == rootWait && d.leaf(rootWord("task"), name) != nil:
		return " It is a task: a mock block defines what its calls do."
	}
	return diag.DidYouMean(name, above, d.leaves(word))
}

// task is the task at a path of the tested flow, nil when there is none.
func (t *Test) task(path string) *Task {
	f := t.Flow
	for {
		name, after, more := strings.Cut(path, "/")
		task := f.Task(name)
		if task == nil || !more {
			return task
		}
		if f = task.Child; f == nil {
			return nil
		}
		path = after
	}
}
