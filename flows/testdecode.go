package flows

import (
	"encoding/json"
	"math"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/flowhost/flowhost/run"
)

// decodeTests decodes the tests of one file.
func (m *module) decodeTests(file *content) []*Test {
	var tests []*Test
	if m.tests == nil {
		m.tests = map[string]hcl.Range{}
	}
	m.checkShared(file)
	for _, b := range file.blocks["test"] {
		name := b.Labels[0]
		if strings.TrimSpace(name) == "" {
			m.add(RuleName, b.LabelRanges[0], "Name cannot be used", "A test needs a name: say in a few words what it shows.")
			continue
		}
		if first, taken := m.tests[name]; taken {
			m.duplicate("test", name, b.LabelRanges[0], first)
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
func (m *module) decodeTest(b *hcl.Block, file *content) *Test {
	s, c := m.site(nil).decodeAt(b, testWords)
	d := s.testedFlow(b, c.arg("flow"))
	if d == nil {
		return nil
	}
	t := &Test{
		Name: b.Labels[0], Range: b.DefRange, Flow: d.flow, At: DefaultTestTime,
		site: s, mocks: map[string]*mock{}, plugins: map[string]*mock{},
	}
	s.testedTrigger(t, d, c)
	if at, ok := (&timetable{site: s}).instant(c.arg("at")); ok {
		t.At = at.UTC()
	}
	t.Until, _ = s.duration(c.arg("until"))
	if t.Scheduled() && c.arg("until") == nil {
		m.add(RuleMissing, b.DefRange, "Missing argument", "A test of a schedule needs the argument \"until\" (%s): write until = \"24h\".", testWords.argument("until").about)
	}
	s.testedParams(t, d, c.arg("params"))
	if a := c.arg("payload"); a != nil {
		s.testedPayload(t, a)
	}
	for _, inner := range c.blocks["mock"] {
		s.decodeMock(t, d, inner)
	}
	for _, inner := range c.blocks["mock_plugin"] {
		s.decodeMockPlugin(t, inner)
	}
	s.shareMocks(t, d, file)
	for _, inner := range c.blocks["assert"] {
		t.asserts = append(t.asserts, s.decodeAssert(t, d, inner))
	}
	return t
}

// testedFlow finds the flow of a test among those of its folder.
func (s *site) testedFlow(b *hcl.Block, a *hcl.Attribute) *draft {
	names := keys(s.drafts)
	switch name, ok := s.text(a); {
	case ok && s.drafts[name] != nil:
		return s.drafts[name]
	case ok && !s.broken:
		s.add(RuleUnknownName, a.Expr.Range(), "Unknown name", "There is no flow %q in the folder.%s", name, didYouMean(name, "", names))
	case a == nil && len(names) == 1:
		return s.drafts[names[0]]
	case a == nil && len(names) > 1:
		s.add(RuleMissing, b.DefRange, "Missing argument", "There are %d flows in the folder: say which one is tested with flow = \"…\".%s", len(names), didYouMean("", "", names))
	}
	return nil
}

func (s *site) testedTrigger(t *Test, d *draft, c *content) {
	a := c.arg("trigger")
	name, ok := s.text(a)
	if !ok {
		return
	}
	if t.Trigger = d.triggers[name]; t.Trigger == nil {
		s.add(RuleUnknownName, a.Expr.Range(), "Unknown name", "Flow %q has no trigger %q.%s", t.Flow.Name, name, didYouMean(name, "", keys(d.triggers)))
		return
	}
	if !t.Trigger.Enabled {
		on := *t.Trigger // a test of it is about what it does once it is on
		on.Enabled = true
		t.Trigger = &on
	}
	for _, other := range []string{"params", "payload"} {
		if a := c.arg(other); a != nil && t.Scheduled() {
			s.add(RuleConflict, a.NameRange, "Not for schedules", "Runs of a schedule have no %s of their own: a schedule states params in its trigger block.", other)
		}
	}
}

// testedParams checks values of params as a run does.
func (s *site) testedParams(t *Test, d *draft, a *hcl.Attribute) {
	if a == nil {
		return
	}
	v := s.object(a)
	if v == cty.NilVal {
		return
	}
	t.Params = map[string]json.RawMessage{}
	for name, value := range v.AsValueMap() {
		p := d.params[name]
		if p == nil {
			s.add(RuleUnknownName, s.keyRange(a, name), "Unknown name", "Flow %q has no param %q.%s", t.Flow.Name, name, didYouMean(name, "", keys(d.params)))
			continue
		}
		encoded, err := p.fill(value, true)
		if err != nil {
			s.add(RuleType, s.keyRange(a, name), "Wrong value of a param", "%s", spelt(err))
			continue
		}
		t.Params[name] = encoded
	}
}

// keyRange is where a name stands in an object that is written out.
func (s *site) keyRange(a *hcl.Attribute, name string) hcl.Range {
	pairs, _ := hcl.ExprMap(a.Expr)
	for _, pair := range pairs {
		if v, diags := pair.Key.Value(nil); !diags.HasErrors() && v.Type() == cty.String && v.AsString() == name {
			return pair.Key.Range()
		}
	}
	return a.Expr.Range()
}

func (s *site) testedPayload(t *Test, a *hcl.Attribute) {
	v, ok := s.evaluate(a)
	if !ok || !v.IsWhollyKnown() {
		return
	}
	encoded, err := encodeJSON(v)
	if err != nil {
		s.add(RuleType, a.Expr.Range(), "Not a value for a payload", "%q cannot be the payload of a run: %s.", a.Name, err)
		return
	}
	t.Payload = encoded
}

func (s *site) decodeMock(t *Test, d *draft, b *hcl.Block) {
	name, at := b.Labels[0], b.LabelRanges[0]
	switch {
	case d.tasks[name] == nil:
		s.add(RuleUnknownName, at, "Unknown name", "Flow %q has no task %q.%s", t.Flow.Name, name, didYouMean(name, "", keys(d.tasks)))
	case t.mocks[name] != nil:
		s.mockedTwice("task", name, at, t.mocks[name].at)
		return
	}
	known := openContract
	if c := d.typed[name]; c != nil {
		known = c.contract
	}
	t.mocks[name] = s.mock(b, known.output)
}

func (s *site) decodeMockPlugin(t *Test, b *hcl.Block) {
	name, at := b.Labels[0], b.LabelRanges[0]
	switch {
	case s.plugins[name] == nil && !s.broken:
		s.add(RuleUnknownName, at, "Unknown name", "There is no plugin %q in the folder.%s", name, didYouMean(name, "", keys(s.plugins)))
	case t.plugins[name] != nil:
		s.mockedTwice("plugin", name, at, t.plugins[name].at)
		return
	}
	t.plugins[name] = s.mock(b, openShape())
}

// checkShared checks the names of the mocks of a file: each must be known to one of
// the flows.
func (m *module) checkShared(file *content) {
	tasks := map[string]bool{}
	for _, d := range m.drafts {
		for name := range d.tasks {
			tasks[name] = true
		}
	}
	s, seen := m.site(nil), map[string]hcl.Range{}
	for _, b := range append(slices.Clone(file.blocks["mock"]), file.blocks["mock_plugin"]...) {
		name, at := b.Labels[0], b.LabelRanges[0]
		switch first, twice := seen[b.Type+" "+name]; {
		case twice && b.Type == "mock":
			s.mockedTwice("task", name, at, first)
		case twice:
			s.mockedTwice("plugin", name, at, first)
		case b.Type == "mock" && !tasks[name] && !m.broken:
			s.add(RuleUnknownName, at, "Unknown name", "No flow in the folder has a task %q.%s", name, didYouMean(name, "", keys(tasks)))
		}
		seen[b.Type+" "+name] = b.DefRange
	}
}

// shareMocks gives a test the mocks of its file that it has not itself.
func (s *site) shareMocks(t *Test, d *draft, file *content) {
	for _, b := range file.blocks["mock"] {
		if name := b.Labels[0]; d.tasks[name] != nil && t.mocks[name] == nil {
			s.decodeMock(t, d, b)
		}
	}
	for _, b := range file.blocks["mock_plugin"] {
		if t.plugins[b.Labels[0]] == nil {
			s.decodeMockPlugin(t, b)
		}
	}
}

func (s *site) mockedTwice(what, name string, at, first hcl.Range) {
	s.add(RuleDuplicate, at, "Duplicate mock", "The calls of %s %q are mocked already, at %s. Put the two together: a mock can tell calls apart by their input and attempt.", what, name, place(first))
}

// spelt makes a sentence of an error.
func spelt(err error) string {
	text := err.Error()
	if text[0] >= 'a' && text[0] <= 'z' {
		text = sentence(text)
	}
	if !strings.HasSuffix(text, "?") && !strings.HasSuffix(text, ".") {
		text += "."
	}
	return text
}

// mock decodes what calls do.
func (s *site) mock(b *hcl.Block, output *shape) *mock {
	s, c := s.decodeAt(b, mockWords)
	m := &mock{at: b.DefRange, outcome: run.OutcomeFailed}
	e := &trial{site: s, roots: mockRoots}
	m.output, m.takes, m.fail = e.bind(c.arg("output")), e.bind(c.arg("takes")), e.bind(c.arg("fail"))
	if a := c.arg("output"); a != nil && m.output != nil && len(a.Expr.Variables()) == 0 {
		s.mockedOutput(a, output)
	}
	if word, ok := s.word(c.arg("outcome")); ok {
		m.outcome = run.Outcome(word)
	}
	m.fails = c.arg("fail") != nil || c.arg("outcome") != nil
	if times, ok := s.whole(c.arg("times"), 1, math.MaxInt32); ok {
		m.times = int(times)
	}
	m.hangs, _ = s.flag(c.arg("hangs"))
	s.checkMock(c, m)
	return m
}

// mockedOutput compares what a mock gives with what the function states. A mock may
// leave out what its test has no use for.
func (s *site) mockedOutput(a *hcl.Attribute, want *shape) {
	from := len(s.diags)
	s.typing().check(a.Expr, want, "output")
	kept := slices.DeleteFunc(s.diags[from:], func(d *hcl.Diagnostic) bool { return RuleOf(d) == RuleMissing })
	s.diags = s.diags[:from+len(kept)]
}

// checkMock reports what contradicts itself, and what is wrong already now.
func (s *site) checkMock(c *content, m *mock) {
	conflict := func(name, detail string) {
		if a := c.arg(name); a != nil {
			s.add(RuleConflict, a.NameRange, "Arguments exclude each other", "%s", detail)
		}
	}
	if m.hangs {
		conflict("takes", "A call that hangs takes until it is told to end: leave out \"takes\" or \"hangs\".")
		conflict("output", "A call that hangs gives nothing: leave out \"output\" or \"hangs\".")
		conflict("fail", "A call that hangs ends with what it is told: leave out \"fail\" or \"hangs\".")
		conflict("outcome", "A call that hangs ends with what it is told: leave out \"outcome\" or \"hangs\".")
	}
	if !m.fails {
		conflict("times", "\"times\" is how often a call fails: say how with \"fail\" or \"outcome\".")
	} else if m.times == 0 {
		conflict("output", "All calls fail, so none gives an output: say how many attempts fail with \"times\", or leave out \"output\".")
	}
	if m.takes != nil && m.takes.constant != cty.NilVal {
		if _, err := takesOf(m.takes.constant); err != nil {
			s.add(RuleValue, m.takes.Range(), "Not a duration", "%s", spelt(err))
		}
	}
	if m.fail != nil && m.fail.constant != cty.NilVal {
		if _, err := failureOf(m.fail.constant, m.outcome); err != nil {
			s.add(RuleType, m.fail.Range(), "Not a failure", "%s", spelt(err))
		}
	}
}

func (s *site) decodeAssert(t *Test, d *draft, b *hcl.Block) *assertion {
	s, c := s.decodeAt(b, assertWords)
	e := &trial{site: s, roots: assertRoots, tested: d, scheduled: t.Scheduled()}
	a := &assertion{at: b.DefRange, condition: e.bind(c.arg("condition")), message: e.bind(c.arg("error_message"))}
	if x := a.condition; x != nil && x.constant != cty.NilVal {
		s.add(RuleValue, x.Range(), "Condition says nothing", "The condition is the same whatever the run does: refer to %s in it.", join([]string{"run", "runs", "task"}, "or"))
	}
	return a
}
