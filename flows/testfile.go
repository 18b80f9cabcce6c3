package flows

import (
	"context"
	"encoding/json"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/flowhost/flowhost/flows/internal/diag"
	"github.com/flowhost/flowhost/flows/internal/lang"
	"github.com/flowhost/flowhost/flows/internal/syntax"
	"github.com/flowhost/flowhost/run"
)

// Suite is flows and their tests. These must not be used concurrently: they share
// what counts how much an expression computes.
type Suite struct {
	*Set
	Tests []*Test // by file, in the order in which they are written
}

// Test is one test block: a flow that is to be run in virtual time.
type Test struct {
	Name  string
	Range hcl.Range // of the block's header
	Flow  *Flow

	Trigger *Trigger      // nil: the run is asked for by name
	At      time.Time     // where virtual time begins
	Until   time.Duration // how much of it passes; 0: until the run has ended

	Params  map[string]json.RawMessage // of the run; none for a schedule
	Payload json.RawMessage

	Answers []*Answer // to waits

	context *exprContext
	mocks   map[string]*mock // by task
	plugins map[string]*mock // by plugin
	asserts []*assertion
}

// DefaultTestTime is where the virtual time of a test begins that states none. It
// is fixed, so that a test gives the same result on every day.
var DefaultTestTime = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// LoadTests is Load that also reads the tests of the flows: the *.test.hcl files
// in directories, and those that are given as paths. A test file belongs to the flow
// files of its directory. Tests are usable only without errors.
func LoadTests(ctx context.Context, paths []string, options Options) (*Suite, hcl.Diagnostics) {
	l := newLoader(ctx, options)
	var flowPaths, files []string
	for _, p := range paths {
		if isTestFile(filepath.Base(p)) {
			files = append(files, p)
			continue
		}
		flowPaths = append(flowPaths, p)
		files = append(files, testsBelow(p)...)
	}
	sources := l.find(flowPaths)
	for _, file := range files {
		sources = l.findBeside(sources, file)
	}
	l.globals = l.readValues(options.VarFiles)
	l.loadAll(sources)
	l.checkUndeclared()
	suite := &Suite{}
	for _, file := range unique(files) {
		suite.Tests = append(suite.Tests, l.loadTests(file)...)
	}
	var diags hcl.Diagnostics
	suite.Set, diags = l.finish()
	return suite, diags
}

func isTestFile(name string) bool {
	stem, ok := hclName(name)
	return ok && strings.HasSuffix(stem, ".test")
}

// testsBelow are the test files in a directory and the directories in it. What cannot be
// read there is reported by those who look for flow files.
func testsBelow(root string) []string {
	var found []string
	filepath.WalkDir(root, func(p string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil
		case e.IsDir() && p != root && strings.HasPrefix(e.Name(), "."):
			return fs.SkipDir
		case !e.IsDir() && isTestFile(e.Name()):
			found = append(found, p)
		}
		return nil
	})
	return found
}

// findBeside adds the module that a test file belongs to, unless it is there.
func (l *loader) findBeside(sources []*source, file string) []*source {
	folder := filepath.Dir(file)
	for _, s := range sources {
		if sameFolder(s.folder, folder) {
			return sources
		}
	}
	for _, s := range l.findFolder(folder) {
		if s.folder == folder {
			return append(sources, s)
		}
	}
	return sources
}

func sameFolder(a, b string) bool {
	full, err := filepath.Abs(a)
	other, wrong := filepath.Abs(b)
	return err == nil && wrong == nil && full == other
}

// unique leaves out files that are given again.
func unique(files []string) []string {
	var out []string
	seen := map[string]bool{}
	for _, file := range files {
		full, err := filepath.Abs(file)
		if err != nil {
			full = file
		}
		if !seen[full] {
			seen[full] = true
			out = append(out, file)
		}
	}
	return out
}

// loadTests reads one file of tests.
func (l *loader) loadTests(file string) []*Test {
	m, f := l.testFile(file)
	if m == nil {
		return nil
	}
	return m.parseTests(f)
}

// parseTests decodes a file of tests of the module's flows.
func (m *module) parseTests(f sourceFile) []*Test {
	if content := m.parseTestFile(f); content != nil {
		return m.decodeTests(content)
	}
	return nil
}

// testFile reads a test file and finds the module that it belongs to, nil for
// none.
func (l *loader) testFile(file string) (*module, sourceFile) {
	content, err := readSource(file)
	if err != nil {
		l.unreadable(file, err)
		return nil, sourceFile{}
	}
	for _, m := range l.modules {
		if sameFolder(m.src.folder, filepath.Dir(file)) {
			return m, sourceFile{name: filepath.Base(file), display: file, bytes: content}
		}
	}
	l.diags.Add(RulePath, diag.StartOf(file), "Tests without flows", "%s tests the flows of its directory, and there is no flow file in it.", file)
	return nil, sourceFile{}
}

// parseTestFile is nil for a file that cannot be parsed.
func (m *module) parseTestFile(f sourceFile) *lang.Content {
	parsed, diags := syntax.ParseFile(f.bytes, f.display)
	m.set.files[f.display] = &hcl.File{Bytes: f.bytes}
	if m.diags.Take(RuleSyntax, diags) {
		return nil
	}
	m.set.files[f.display] = parsed
	m.def = &run.Definition{Files: map[string][]byte{}} // what tests read is not recorded with the flows
	return lang.Decode(m.diags, parsed.Body, testFileSchema, diag.StartOf(f.display))
}

// Only is the set with nothing that starts runs by itself but one trigger of one
// flow; nil for none.
func (s *Set) Only(of *Flow, trigger *Trigger) *Set {
	only := &Set{Limits: s.Limits, byName: map[string]*Flow{}, limits: s.limits, files: s.files}
	for _, f := range s.Flows {
		quiet := *f
		quiet.Triggers = nil
		if f == of && trigger != nil {
			quiet.Triggers = []*Trigger{trigger}
		}
		only.Flows = append(only.Flows, &quiet)
		only.byName[f.Name] = &quiet
	}
	return only
}

// Request asks for the run of a test that no schedule starts.
func (t *Test) Request() run.Request {
	r := run.Request{Flow: t.Flow.Name, Params: t.Params, Trigger: run.Trigger{Kind: run.TriggerManual, Time: t.At, Payload: t.Payload}}
	if t.Trigger != nil {
		r.Trigger.Kind, r.Trigger.Name, r.Trigger.Subject = t.Trigger.Kind, t.Trigger.Name, t.Trigger.Subject
	}
	return r
}

// Scheduled reports whether a schedule starts the runs of the test.
func (t *Test) Scheduled() bool { return t.Trigger != nil && t.Trigger.Kind == run.TriggerSchedule }

// maxTest bounds how much virtual time passes in a test that waits for the end of
// its run.
const maxTest = 10 * 365 * 24 * time.Hour

// Span is where virtual time begins, and where it ends at the latest. A schedule
// fires from At on, up to, but not including, the end of the test: its day has 24
// hours.
func (t *Test) Span() (begin, end time.Time) {
	switch {
	case t.Scheduled():
		return t.At.Add(-1), t.At.Add(t.Until - 1)
	case t.Until > 0:
		return t.At, t.At.Add(t.Until)
	}
	return t.At, t.At.Add(maxTest)
}

// LoadMocks is Load that also reads the mocks that the tests of a file share. The
// suite has a test without a name for each flow of the file's directory, which mocks
// the same calls and asserts nothing.
func LoadMocks(ctx context.Context, paths []string, file string, options Options) (*Suite, hcl.Diagnostics) {
	l := newLoader(ctx, options)
	l.globals = l.readValues(options.VarFiles)
	l.loadAll(l.findBeside(l.find(paths), file))
	l.checkUndeclared()
	suite := &Suite{Tests: l.loadMocks(file)}
	var diags hcl.Diagnostics
	suite.Set, diags = l.finish()
	return suite, diags
}

func (l *loader) loadMocks(file string) []*Test {
	m, f := l.testFile(file)
	if m == nil {
		return nil
	}
	content := m.parseTestFile(f)
	if content == nil {
		return nil
	}
	m.checkShared(content)
	var all []*Test
	for _, name := range keys(m.decoders) {
		all = append(all, m.exprContext(nil).mocksOf(m.decoders[name], content))
	}
	return all
}

// mocksOf is a test of what the file mocks for a flow.
func (s *exprContext) mocksOf(d *flowDecoder, file *lang.Content) *Test {
	t := &Test{Flow: d.flow, At: DefaultTestTime, context: s, mocks: map[string]*mock{}, plugins: map[string]*mock{}}
	s.shareMocks(t, d, file)
	return t
}
