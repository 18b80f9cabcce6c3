package flows

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/flowhost/flowhost/flows/internal/diag"
	"github.com/flowhost/flowhost/flows/internal/reachspec"
	"github.com/flowhost/flowhost/flows/internal/syntax"
	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/run/access"
)

// Words for what a guest may do with a directory.
const (
	readOnly  = "ro"
	readWrite = "rw"
)

// grant is a grant block.
type grant struct {
	folders []grantedFolder // by path
	access.Grants
	broken bool // something in it is wrong, and reported

	at     hcl.Range            // of the block's header
	places map[string]hcl.Range // of its arguments and blocks
}

// place is where something is granted.
func (g *grant) place(key string) hcl.Range {
	if at, ok := g.places[key]; ok {
		return at
	}
	return g.at
}

// grantedFolder is a directory below that of the flow file.
type grantedFolder struct {
	path   string // clean, with slashes: "data/in"
	source string // as the flow file has it: "./data/in"
	write  bool
	at     hcl.Range
}

// grant reads a grant block; nil without one.
func (s *exprContext) grant(b *hcl.Block) *grant {
	if b == nil {
		return nil
	}
	from := s.diags.Count()
	s, c := s.decodeAt(b, reachspec.Grant)
	d := reachDecoder{s, c}
	g := &grant{folders: s.folders(c.Arg("files")), Grants: d.grants(), at: b.DefRange, places: map[string]hcl.Range{}}
	g.broken = s.diags.Failed(from)
	for name, a := range c.Args {
		g.places[name] = a.Expr.Range()
	}
	for name, blocks := range c.Blocks {
		g.places[name] = blocks[0].DefRange
	}
	for _, f := range g.folders {
		if f.write && s.module.restored == nil {
			s.module.written = append(s.module.written, f)
			s.module.writable.add(filepath.Join(s.module.src.folder, filepath.FromSlash(f.path)))
		}
	}
	return g
}

// directories reads the argument files, { "./data" = "ro", … }.
func (s *exprContext) folders(a *hcl.Attribute) []grantedFolder {
	v, ok := s.value(a, cty.Map(cty.String))
	if !ok {
		return nil
	}
	places, values := s.keyPlaces(a, "directory"), v.AsValueMap()
	var out []grantedFolder
	for _, key := range keys(values) {
		f := grantedFolder{path: path.Clean(key), source: key, at: placeOf(places, key, a)}
		write, ok := s.folderMode(key, values[key], f.at)
		if f.write = write; ok && s.checkFolder(f) && s.apart(f, out) {
			out = append(out, f)
		}
	}
	slices.SortFunc(out, func(a, b grantedFolder) int { return strings.Compare(a.path, b.path) })
	return out
}

// ParseGrant reads the arguments of a grant block from text, files = { "./data" = "ro" },
// or the same as JSON. Directories are below the given one. The set has the text for the
// snippets of diagnostics; from says where it was given.
func ParseGrant(ctx context.Context, text, folder, from string) (run.Grants, *Set, hcl.Diagnostics) {
	l := newLoader(ctx, Options{})
	m := &module{loader: l, src: &source{folder: folder}, def: new(run.Definition), base: &hcl.EvalContext{}, reach: newReach(""), alone: true}
	name := from
	if strings.HasPrefix(strings.TrimSpace(text), "{") {
		name += ".json"
	}
	parsed, diags := syntax.ParseFile([]byte(text), name)
	l.set.files[name] = &hcl.File{Bytes: []byte(text)}
	if l.diags.Take(RuleSyntax, diags) {
		return run.Grants{}, l.set, l.diags.Sorted()
	}
	l.set.files[name] = parsed
	own := m.exprContext(reachspec.Grant).grant(&hcl.Block{Type: "grant", Body: parsed.Body, DefRange: diag.StartOf(name)})
	m.checkMissing()
	return m.record(own), l.set, l.diags.Sorted()
}

// keyPlaces finds where the keys of an object are written, as far as they are
// written out.
func (s *exprContext) keyPlaces(a *hcl.Attribute, what string) map[string]hcl.Range {
	pairs, _ := hcl.ExprMap(a.Expr) // nothing for an expression of another form
	places := make(map[string]hcl.Range, len(pairs))
	for _, p := range pairs {
		key, diags := p.Key.Value(nil)
		if diags.HasErrors() || key.Type() != cty.String {
			continue
		}
		name, at := key.AsString(), p.Key.Range()
		if first, twice := places[name]; twice {
			s.diags.Add(RuleDuplicate, at, "Duplicate "+what, "%q is granted already, at %s. Leave one of the two out.", name, diag.Place(first))
			continue
		}
		places[name] = at
	}
	return places
}

func (s *exprContext) folderMode(key string, v cty.Value, at hcl.Range) (write, ok bool) {
	if v.IsNull() {
		s.diags.Add(RuleValue, at, "Value not allowed", "%q is granted as \"ro\", to be read, or as \"rw\", to be written too; null is neither.", key)
		return false, false
	}
	switch word := v.AsString(); word {
	case readOnly, readWrite:
		return word == readWrite, true
	default:
		s.diags.Add(RuleValue, at, "Value not allowed", "%q cannot be granted as %q: \"ro\" is to be read, \"rw\" to be written too.%s",
			key, word, diag.DidYouMean(word, "", []string{readOnly, readWrite}))
		return false, false
	}
}

// checkFolder reports a directory that cannot be granted.
func (s *exprContext) checkFolder(f grantedFolder) bool {
	refuse := func(detail string, args ...any) bool {
		s.diags.Add(RuleGrant, f.at, "Directory cannot be granted", detail, args...)
		return false
	}
	local := filepath.FromSlash(f.path)
	switch {
	case path.IsAbs(f.path) || filepath.IsAbs(local):
		return refuse("%q is an absolute path. Directories are granted by their path below that of the flow file, such as \"./data\".", f.source)
	case !filepath.IsLocal(local):
		return refuse("%q leads out of the directory of the flow file. Only what is below it can be granted: move the directory there.", f.source)
	case f.path == ".":
		return refuse("The directory of the flow file itself cannot be granted: it contains the flows. Grant a directory below it, such as \"./data\".")
	case slices.ContainsFunc(strings.Split(f.path, "/"), func(name string) bool { return strings.HasPrefix(name, ".") }):
		return refuse("%q has a name that begins with a dot: such directories hold what is not for guests, .git and .flowhost among them.", f.source)
	}
	if s.module.restored != nil {
		return true // the host sees what there is when it runs the call
	}
	info, err := statBelow(s.module.src.folder, local)
	switch {
	case errors.Is(err, fs.ErrNotExist) && f.write: // made by the first call
	case errors.Is(err, fs.ErrNotExist):
		s.module.missing = append(s.module.missing, f)
	case err != nil:
		return refuse("%s cannot be used: %s.", f.source, err)
	case !info.IsDir():
		return refuse("%s is not a directory. Grant the directory that it is in.", f.source)
	}
	return true
}

// checkMissing reports directories that are to be read and are not there, unless
// they are in one that guests write to: then a task may make them first.
func (m *module) checkMissing() {
	for _, f := range m.missing {
		if !slices.ContainsFunc(m.written, f.in) {
			m.diags.Add(RuleGrant, f.at, "No such directory", "There is no directory %s, as seen from the directory of this flow file: make it, or correct the path.", f.source)
		}
	}
}

// statBelow looks at a file below a directory without following links, as the host
// will.
func statBelow(folder, name string) (fs.FileInfo, error) {
	var info fs.FileInfo
	for part := range strings.SplitSeq(name, string(filepath.Separator)) {
		var err error
		folder = filepath.Join(folder, part)
		info, err = os.Lstat(folder)
		if e, ok := errors.AsType[*fs.PathError](err); ok && !errors.Is(err, fs.ErrNotExist) {
			err = e.Err
		}
		switch {
		case err != nil:
			return nil, err
		case info.Mode()&fs.ModeSymlink != 0:
			return nil, errors.New("a link is on the way, and its target could change: put the directory itself there")
		}
	}
	return info, nil
}

// apart reports a directory within another one of the same block: a guest could
// reach it in two ways, with two sets of rights.
func (s *exprContext) apart(f grantedFolder, others []grantedFolder) bool {
	for _, o := range others {
		switch {
		case o.path == f.path:
			s.diags.Add(RuleDuplicate, f.at, "Duplicate directory", "%q and %q are the same directory. Leave one of the two out.", o.source, f.source)
		case f.in(o) || o.in(f):
			s.diags.Add(RuleConflict, f.at, "Directory within a directory", "%q and %q overlap: granted directories must not contain each other. Leave one of the two out.", o.source, f.source)
		default:
			continue
		}
		return false
	}
	return true
}

// in reports whether a directory is another one or below it.
func (f grantedFolder) in(o grantedFolder) bool {
	rest, ok := strings.CutPrefix(f.path, o.path)
	return ok && (rest == "" || rest[0] == '/')
}

// granted is what a task may touch: what its own block grants, which may narrow
// what its plugin is granted and never widen it, or all that the plugin is
// granted. A plugin that is named by its path has no block, and the task's is
// all there is.
func (s *exprContext) granted(own *grant, p *plugin) run.Grants {
	from := own
	switch {
	case p == nil:
		return run.Grants{}
	case own == nil:
		from = p.grant
	case p.Name != "":
		s.narrows(own, p)
	}
	g := s.module.record(from)
	s.checkAllowed(&g, from)
	return g
}

func (s *exprContext) narrows(own *grant, p *plugin) {
	of := p.grant
	if of == nil {
		of = new(grant)
	}
	if of.broken {
		return // what it would grant is not known
	}
	for _, f := range own.folders {
		i := slices.IndexFunc(of.folders, f.in)
		switch {
		case i < 0:
			s.diags.Add(RuleGrant, f.at, "Not granted to the plugin",
				"A task's grant narrows that of its plugin, and plugin %q is not granted %q%s. Grant it there first, or leave it out.", p.Name, f.source, listed(of.folders))
		case f.write && !of.folders[i].write:
			s.diags.Add(RuleGrant, f.at, "Not granted to the plugin",
				"A task's grant narrows that of its plugin, and plugin %q is granted %q as \"ro\" only. Grant it as \"rw\" there, or as \"ro\" here.", p.Name, of.folders[i].source)
		}
	}
	for _, x := range of.Excess(&own.Grants) {
		s.diags.Add(RuleGrant, own.place(x.Key), "Not granted to the plugin",
			"A task's grant narrows that of its plugin, and plugin %q is not granted %s. Grant it there first, or leave it out.", p.Name, x.Entry)
	}
}

// listed ends half a sentence with what there is.
func listed(folders []grantedFolder) string {
	if len(folders) == 0 {
		return " or any other directory"
	}
	var names []string
	for _, f := range folders {
		names = append(names, f.source)
	}
	return ", only " + diag.Join(names, "and")
}

// record gives a grant the form of calls, and notes in the definition where its
// directories are: the run may continue when the flow files are somewhere else.
func (m *module) record(from *grant) run.Grants {
	if from == nil {
		return run.Grants{}
	}
	g := run.Grants{Grants: from.Grants}
	if len(from.folders) > 0 && m.def.Folder == "" {
		m.def.Folder = m.home()
	}
	for _, f := range from.folders {
		g.Files = append(g.Files, run.FileGrant{Folder: m.def.Folder, Path: f.path, Guest: "/" + f.path, Write: f.write})
	}
	return g
}

// home is the absolute path of the flow files' directory.
func (m *module) home() string {
	if m.restored != nil {
		return m.restored.Folder
	}
	abs, err := filepath.Abs(m.src.folder)
	if err != nil { // the process has no working directory any more
		m.diags.Add(RulePath, m.src.at(), "Cannot read", "%s.", plainly(err))
	}
	return abs
}

// checkWants warns of what a task's plugin wants where no grant block holds for the
// task. One that grants less is an answer, and so is an empty one: a plugin may do
// without.
func (s *exprContext) checkWants(own *grant, p *plugin, named *hcl.Attribute) {
	if own != nil || p == nil || p.grant != nil || p.signature == nil || s.module.restored != nil {
		return
	}
	who, at := "This task has no grant block, and "+p.Source, named.Expr.Range()
	if p.Name != "" {
		who, at = fmt.Sprintf("Plugin %q has no grant block and", p.Name), p.block.DefRange
	}
	for _, want := range p.signature.Wants {
		line := reachspec.Examples[want.Name]
		if line == "" {
			continue
		}
		d := s.diags.Add(RuleGrant, at, "Wanted and not granted", "%s wants %s%s. Write a grant block with what it may use, such as %s, or grant {} to do without.",
			who, want.Name, reason(want.Why), line)
		d.Severity = hcl.DiagWarning
	}
}

// reason quotes why a plugin wants something, for the end of half a sentence.
func reason(why string) string {
	if why = clip(oneLine(why)); why == "" {
		return ""
	}
	return fmt.Sprintf(", in its author's words: %q", why)
}

// oneLine makes a line of words from elsewhere, of characters that can be seen.
func oneLine(text string) string {
	hidden := func(r rune) bool { return r == ' ' || !unicode.IsPrint(r) }
	return strings.Join(strings.FieldsFunc(text, hidden), " ")
}
