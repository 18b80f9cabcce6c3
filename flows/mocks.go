package flows

import (
	"context"

	"github.com/hashicorp/hcl/v2"

	"github.com/flowhost/flowhost/flows/internal/lang"
)

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
