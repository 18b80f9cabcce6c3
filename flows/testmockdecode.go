package flows

import (
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/flowhost/flowhost/flows/internal/diag"
	"github.com/flowhost/flowhost/flows/internal/jsonschema"
	"github.com/flowhost/flowhost/flows/internal/lang"
	"github.com/flowhost/flowhost/run"
)

func (s *exprContext) decodeMock(t *Test, d *flowDecoder, b *hcl.Block) {
	path, at := b.Labels[0], b.LabelRanges[0]
	if t.mocks[path] != nil {
		s.mockedTwice("task", path, at, t.mocks[path].at)
		return
	}
	known := openContract
	of, task := s.named(d, path, at, rootWord("task"))
	if task != nil && of.typed[task.Name] != nil {
		known = of.typed[task.Name].contract
	}
	t.mocks[path] = s.mock(b, &testContext{roots: mockRoots, called: task}, known.output)
}

func (s *exprContext) decodeMockPlugin(t *Test, b *hcl.Block) {
	name, at := b.Labels[0], b.LabelRanges[0]
	switch {
	case s.module.plugins[name] == nil && !s.module.broken:
		s.diags.Add(RuleUnknownName, at, "Unknown name", "There is no plugin %q in the directory.%s", name, diag.DidYouMean(name, "", keys(s.module.plugins)))
	case t.plugins[name] != nil:
		s.mockedTwice("plugin", name, at, t.plugins[name].at)
		return
	}
	t.plugins[name] = s.mock(b, &testContext{roots: mockRoots}, jsonschema.Any())
}

// checkShared checks the names of the mocks of a file: each must be known to one of
// the flows.
func (m *module) checkShared(file *lang.Content) {
	known := func(path string) bool {
		return slices.ContainsFunc(slices.Collect(maps.Values(m.decoders)), func(d *flowDecoder) bool {
			_, t := m.lookup(d, path, rootWord("task"))
			return t != nil
		})
	}
	s, seen := m.exprContext(nil), map[string]hcl.Range{}
	for _, b := range append(slices.Clone(file.Blocks["mock"]), file.Blocks["mock_plugin"]...) {
		name, at := b.Labels[0], b.LabelRanges[0]
		switch first, twice := seen[b.Type+" "+name]; {
		case twice && b.Type == "mock":
			s.mockedTwice("task", name, at, first)
		case twice:
			s.mockedTwice("plugin", name, at, first)
		case b.Type == "mock" && !known(name) && !m.broken:
			var tasks []string
			for _, d := range m.decoders {
				tasks = append(tasks, d.leaves(rootWord("task"))...)
			}
			slices.Sort(tasks)
			s.diags.Add(RuleUnknownName, at, "Unknown name", "No flow in the directory has a task %q.%s", name, diag.DidYouMean(name, "", slices.Compact(tasks)))
		}
		seen[b.Type+" "+name] = b.DefRange
	}
}

// shareMocks gives a test the mocks of its file that it has not itself. A mock of a
// task in a sub-flow and one of the whole are for the same calls.
func (s *exprContext) shareMocks(t *Test, d *flowDecoder, file *lang.Content) {
	own := keys(t.mocks)
	for _, b := range file.Blocks["mock"] {
		path := b.Labels[0]
		same := func(other string) bool {
			return path == other || strings.HasPrefix(path, other+"/") || strings.HasPrefix(other, path+"/")
		}
		if _, task := s.module.lookup(d, path, rootWord("task")); task != nil && !slices.ContainsFunc(own, same) && t.mocks[path] == nil {
			s.decodeMock(t, d, b)
		}
	}
	for _, b := range file.Blocks["mock_plugin"] {
		if t.plugins[b.Labels[0]] == nil {
			s.decodeMockPlugin(t, b)
		}
	}
}

// checkMocks reports mocks of calls that another mock keeps from being made.
func (s *exprContext) checkMocks(t *Test, d *flowDecoder) {
	for _, path := range keys(t.mocks) {
		if _, task := s.module.lookup(d, path, rootWord("task")); task == nil {
			continue // which is reported
		}
		for i := range path {
			if whole := t.mocks[path[:i]]; path[i] == '/' && whole != nil {
				s.diags.Add(RuleConflict, t.mocks[path].at, "Sub-flow is mocked as a whole", "Nothing calls %q: the mock of %q, at %s, takes the place of its whole sub-flow. Leave out one of the two.", path, path[:i], diag.Place(whole.at))
				break
			}
		}
	}
}

func (s *exprContext) mockedTwice(what, name string, at, first hcl.Range) {
	s.diags.Add(RuleDuplicate, at, "Duplicate mock", "The calls of %s %q are mocked already, at %s. Put the two together: a mock can distinguish calls by their input and attempt.", what, name, diag.Place(first))
}

// mock decodes what calls do.
func (s *exprContext) mock(b *hcl.Block, e *testContext, output *jsonschema.Shape) *mock {
	s, c := s.decodeAt(b, mockSchema)
	e.exprContext = s
	m := &mock{at: b.DefRange, outcome: run.OutcomeFailed}
	m.output, m.takes, m.fail = e.bind(c.Arg("output")), e.bind(c.Arg("takes")), e.bind(c.Arg("fail"))
	if a := c.Arg("output"); a != nil && m.output != nil && len(a.Expr.Variables()) == 0 {
		s.mockedOutput(a, output)
	}
	if word, ok := s.word(c.Arg("outcome")); ok {
		m.outcome = run.Outcome(word)
	}
	m.fails = c.Arg("fail") != nil || c.Arg("outcome") != nil
	if times, ok := s.whole(c.Arg("times"), 1, math.MaxInt32); ok {
		m.times = int(times)
	}
	m.hangs, _ = s.flag(c.Arg("hangs"))
	s.checkMock(c, m)
	return m
}

// mockedOutput compares what a mock gives with what the function states. A mock may
// leave out what its test has no use for.
func (s *exprContext) mockedOutput(a *hcl.Attribute, want *jsonschema.Shape) {
	from := s.diags.Count()
	s.typing().check(a.Expr, want, "output")
	s.diags.Drop(from, func(d *hcl.Diagnostic) bool { return RuleOf(d) == RuleMissing })
}

// checkMock reports what contradicts itself, and what is wrong already now.
func (s *exprContext) checkMock(c *lang.Content, m *mock) {
	conflict := func(name, detail string) {
		if a := c.Arg(name); a != nil {
			s.diags.Add(RuleConflict, a.NameRange, "Arguments exclude each other", "%s", detail)
		}
	}
	if m.hangs {
		conflict("takes", "A call that hangs takes until it is canceled: leave out \"takes\" or \"hangs\".")
		conflict("output", "A call that hangs has no output: leave out \"output\" or \"hangs\".")
		conflict("fail", "A call that hangs ends as it is canceled: leave out \"fail\" or \"hangs\".")
		conflict("outcome", "A call that hangs ends as it is canceled: leave out \"outcome\" or \"hangs\".")
	}
	if !m.fails {
		conflict("times", "\"times\" is how often a call fails: state how with \"fail\" or \"outcome\".")
	} else if m.times == 0 && (m.fail == nil || m.fail.constant != cty.NilVal && !m.fail.constant.IsNull()) {
		conflict("output", "All calls fail, so none has an output: state how many attempts fail with \"times\", or leave out \"output\".")
	}
	if m.takes != nil && m.takes.constant != cty.NilVal {
		if _, err := takesOf(m.takes.constant); err != nil {
			s.diags.Add(RuleValue, m.takes.Range(), "Not a duration", "%s", asSentence(err))
		}
	}
	if m.fail != nil && m.fail.constant != cty.NilVal && !m.fail.constant.IsNull() {
		if _, err := failureOf(m.fail.constant, m.outcome); err != nil {
			s.diags.Add(RuleType, m.fail.Range(), "Not a failure", "%s", asSentence(err))
		}
	}
}
