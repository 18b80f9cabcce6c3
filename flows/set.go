package flows

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty/function"

	"github.com/flowhost/flowhost/flows/internal/budget"
	"github.com/flowhost/flowhost/flows/internal/diag"
	"github.com/flowhost/flowhost/flows/internal/funcs"
	"github.com/flowhost/flowhost/flows/internal/syntax"
	"github.com/flowhost/flowhost/run"
)

// Options are where values and modules come from. The zero value is for flows
// without required variables whose plugins are not looked at.
type Options struct {
	// Vars are values of variables by name. They win over those of files.
	Vars map[string]VarValue

	// VarFiles are further files of values, HCL or JSON, for all modules. Later
	// ones win, and all of them win over a directory's own flowhost.vars.hcl and
	// *.auto.vars.hcl.
	VarFiles []string

	// Ceilings are the operator's bounds on what flows may state.
	Ceilings Ceilings

	// Operator is what the host's settings declare; nil for nothing.
	Operator *Operator

	// Catalog knows the modules of plugins. Without one, digests stay empty and
	// functions are not checked.
	Catalog Catalog

	// Standard knows the plugins "std/NAME"; the zero value knows none.
	Standard Standard

	// Now is the present, for warnings about schedules that lie in the past; without it
	// there are none.
	Now time.Time

	// Opened bounds the JSON of one value that expressions look into, in bytes;
	// DefaultOpened unless stated. What is larger is passed on whole.
	Opened int
}

// VarValue is a variable's value as text: the text itself for a variable of type
// string or of no stated type, an HCL expression for any other.
type VarValue struct {
	Text string
	From string // where it was given, for diagnostics: "--var region"

	// Ambient values, such as those from the environment, need not belong to any
	// variable.
	Ambient bool
}

// Catalog looks modules up. Its errors name the module and are shown to the
// author of the flow; fs.ErrNotExist means that there is none.
type Catalog interface {
	// Signature reads the module at a path.
	Signature(ctx context.Context, path string) (run.Signature, error)
	// SignatureOf finds a module that was read before, "sha256:...".
	SignatureOf(ctx context.Context, digest string) (run.Signature, error)
}

// Standard is the plugins that are always at hand, "std/NAME".
type Standard struct {
	Names []string

	// Signature is that of the module that a plugin is a part of: the functions of the part
	// begin with its name and a dot. fs.ErrNotExist means that there is none.
	Signature func(ctx context.Context, name string) (run.Signature, error)
}

// Set is what one Load or Restore gave.
type Set struct {
	Flows  []*Flow  // sorted by name
	Limits []*Limit // of all directories, sorted by name

	operator *Operator
	reach    []*reach          // of each directory
	reachOf  map[string]*reach // by the full name of a flow

	byName map[string]*Flow
	limits map[string]*Limit
	files  map[string]*hcl.File
}

// Flow is the flow of that full name, or nil.
func (s *Set) Flow(name string) *Flow { return s.byName[name] }

// Files holds what diagnostics point into, for snippets. It must not be changed.
func (s *Set) Files() map[string]*hcl.File { return s.files }

// Load reads flow files and directories of them. The set is never nil, so that
// snippets can be shown, but its flows are usable only without errors.
func Load(ctx context.Context, paths []string, options Options) (*Set, hcl.Diagnostics) {
	l := newLoader(ctx, options)
	sources := l.find(paths)
	l.globals = l.readValues(options.VarFiles)
	l.loadAll(sources)
	l.checkUndeclared()
	return l.finish()
}

// Restore makes the flows of a recorded definition. Only the values of sensitive
// variables, which are not recorded, are taken from the options, and modules are
// found by their recorded digests.
func Restore(ctx context.Context, definition *run.Definition, options Options) (*Set, hcl.Diagnostics) {
	l := newLoader(ctx, options)
	l.globals = l.readValues(options.VarFiles)
	s := &source{prefix: definition.Prefix, read: recorded(definition.Files)}
	for _, name := range slices.Sorted(maps.Keys(definition.Files)) {
		if isFlowFile(name) {
			s.files = append(s.files, sourceFile{name: name, display: name, bytes: definition.Files[name]})
		}
	}
	l.load(s, definition)
	return l.finish()
}

// loader loads modules into one set.
type loader struct {
	diags   *diag.Report
	ctx     context.Context
	options Options
	globals []*given // values of Options.VarFiles

	// unsearched are the diagnostics about what could not be read below a directory
	// that was searched for flow files.
	unsearched hcl.Diagnostics

	set    *Set
	parsed syntax.Ahead

	runFunctions map[string]function.Function // what runs may call

	modules    []*module             // in the order in which they were loaded
	signatures map[string]*signature // by path or digest: each module is looked at once
	declared   map[string]bool       // variables of all modules
	writable   writable              // as far as grants have been read
	unread     bool                  // a flow file could not be parsed
	budget     *budget.Budget        // what may still be computed
}

// All expressions of a load share one budget. What they may cost grows with what is
// read: parsing it costs as much.
const (
	loadCost        = 2 * budget.Max
	loadCostPerByte = 1
)

func newLoader(ctx context.Context, options Options) *loader {
	return &loader{
		diags: new(diag.Report), ctx: ctx, options: options,
		set: &Set{
			operator: options.Operator, reachOf: map[string]*reach{},
			byName: map[string]*Flow{}, limits: map[string]*Limit{}, files: map[string]*hcl.File{},
		},
		runFunctions: funcs.Table(),
		signatures:   map[string]*signature{},
		declared:     map[string]bool{},
		budget:       budget.Of(loadCost),
	}
}

func (l *loader) finish() (*Set, hcl.Diagnostics) {
	slices.SortFunc(l.set.Flows, func(a, b *Flow) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(l.set.Limits, func(a, b *Limit) int { return cmp.Compare(a.Name, b.Name) })
	return l.set, l.diags.Sorted()
}

// publish puts a flow into the set.
func (l *loader) publish(f *Flow) {
	if first := l.set.byName[f.Name]; first != nil {
		l.diags.Duplicate("flow", f.Name, f.Range, first.Range)
		return
	}
	l.set.byName[f.Name] = f
	l.set.Flows = append(l.set.Flows, f)
}

// readValues reads files that give values for variables.
func (l *loader) readValues(paths []string) []*given {
	var out []*given
	for _, p := range paths {
		content, err := readSource(p)
		if err != nil {
			l.unreadable(p, err)
			continue
		}
		out = append(out, l.parseValues(sourceFile{name: p, display: p, bytes: content})...)
	}
	return out
}
