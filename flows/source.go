package flows

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclwrite"

	"github.com/flowhost/flowhost/flows/internal/diag"
	"github.com/flowhost/flowhost/flows/internal/siblings"
	"github.com/flowhost/flowhost/flows/internal/syntax"
)

// source is the directory of one module: its flow files and what they may read.
type source struct {
	folder string // where plugin paths start; "" for a restored module
	prefix string // of flow names: "", or "billing/"
	files  []sourceFile
	values []sourceFile // files that give values for variables
	read   func(name string) ([]byte, error)

	// Of files that are loaded by themselves.
	alone     bool
	elsewhere map[string]bool // variables of the directory's other files
	unread    bool            // another file cannot be parsed: what it declares is not known
	broken    bool            // and something that is needed may be in it
}

// sourceFile is a file of a module. Its display name is used in diagnostics.
type sourceFile struct {
	name    string // in its directory
	display string
	bytes   []byte
	shared  bool // of another file than those that are loaded: what these need of it
}

func (s *source) at() hcl.Range {
	if len(s.files) > 0 {
		return diag.StartOf(s.files[0].display)
	}
	return diag.StartOf(s.folder)
}

// lends reports whether a file is another than those that are loaded, which need
// something of it.
func (s *source) lends(display string) bool {
	return slices.ContainsFunc(s.files, func(f sourceFile) bool { return f.shared && f.display == display })
}

// hclName takes the ending off the name of an HCL file, in either syntax.
func hclName(name string) (stem string, ok bool) {
	stem, ok = strings.CutSuffix(strings.TrimSuffix(name, ".json"), ".hcl")
	return stem, ok && !strings.HasPrefix(name, ".")
}

// isFlowFile distinguishes flow files from values, tests and the host's settings.
func isFlowFile(name string) bool {
	stem, ok := hclName(name)
	return ok && stem != "flowhost" && !strings.HasSuffix(stem, ".vars") && !strings.HasSuffix(stem, ".test")
}

// isAutomatic reports whether a file of values is read without being named.
func isAutomatic(name string) bool {
	stem, ok := hclName(name)
	return ok && (stem == "flowhost.vars" || strings.HasSuffix(stem, ".auto.vars"))
}

// find gives the modules of files and directories. A path that is given twice is
// read once; a file that is part of two modules is an error, because its flows
// would run twice under two names.
func (l *loader) find(paths []string) []*source {
	out := l.findAll(paths)
	owner := map[string]string{}
	for i, s := range out {
		for _, f := range s.files {
			abs, err := filepath.Abs(f.display)
			if err != nil || f.shared {
				continue
			}
			if first, taken := owner[abs]; taken {
				l.diags.Add(RulePath, diag.StartOf(f.display), "File given twice",
					"%s is read as part of %s already: leave out one of the paths.", f.display, first)
				return out[:i]
			}
			owner[abs] = s.folder
		}
	}
	return out
}

func (l *loader) findAll(paths []string) []*source {
	var out []*source
	seen := map[string]bool{}
	for _, p := range paths {
		if abs, err := filepath.Abs(p); err == nil {
			if seen[abs] {
				continue
			}
			seen[abs] = true
		}
		info, err := os.Stat(p)
		switch {
		case err != nil:
			l.unreadable(p, err)
		case info.IsDir():
			out = append(out, l.findFolder(p)...)
		default:
			out = l.findFile(out, p)
		}
	}
	for _, s := range out {
		if s.alone {
			l.share(s)
		}
	}
	return out
}

func (l *loader) unreadable(p string, err error) *hcl.Diagnostic {
	if errors.Is(err, fs.ErrNotExist) {
		return l.diags.Add(RulePath, diag.StartOf(p), "No such file or directory", "There is no %s.", p)
	}
	return l.diags.Add(RulePath, diag.StartOf(p), "Cannot read", "%s.", plainly(err))
}

// plainly is an error of a file without the name of the system call.
func plainly(err error) string {
	if fault := (*fs.PathError)(nil); errors.As(err, &fault) {
		return strings.Replace(err.Error(), fault.Error(), fault.Path+": "+fault.Err.Error(), 1)
	}
	return err.Error()
}

// findFile makes a module of one file, or adds it to that of another file of the
// directory.
func (l *loader) findFile(out []*source, p string) []*source {
	if !isFlowFile(filepath.Base(p)) {
		l.diags.Add(RulePath, diag.StartOf(p), "Not a flow file", "%s is not read: the names of flow files end in .hcl or .hcl.json, and *.vars.hcl, *.test.hcl and flowhost.hcl are for other things.", p)
		return out
	}
	for _, s := range out {
		if s.alone && sameFolder(s.folder, filepath.Dir(p)) {
			l.open(s, p)
			return out
		}
	}
	s := &source{folder: filepath.Dir(p), read: jail(filepath.Dir(p)), alone: true}
	l.open(s, p)
	return append(out, s)
}

// share adds what files that are loaded by themselves need of the others of their
// directory: blocks to which they refer, and values of variables.
func (l *loader) share(s *source) {
	own, others, unreadable := s.texts(), []siblings.File{}, map[string]error{}
	entries, _ := os.ReadDir(s.folder) // a file of it has been read
	for _, e := range entries {
		p := filepath.Join(s.folder, e.Name())
		switch {
		case e.IsDir(), slices.ContainsFunc(s.files, func(f sourceFile) bool { return f.name == e.Name() }):
		case isAutomatic(e.Name()):
			l.open(s, p)
		case isFlowFile(e.Name()):
			content, err := readSource(p)
			if err != nil {
				unreadable[p] = err
				continue
			}
			others = append(others, siblings.File{Name: p, Bytes: content})
		}
	}
	slices.SortStableFunc(s.values, weakestFirst)
	chosen := siblings.Choose(own, others)
	s.elsewhere, s.unread = chosen.Variables, len(chosen.Unread)+len(unreadable) > 0
	s.broken = chosen.Missing && s.unread
	for _, f := range chosen.Files {
		s.files = append(s.files, sourceFile{name: filepath.Base(f.Name), display: f.Name, bytes: f.Bytes, shared: true})
	}
	for _, f := range others {
		l.set.files[f.Name] = &hcl.File{Bytes: f.Bytes}
	}
	for _, diags := range chosen.Unread {
		l.passOver(s, diags)
	}
	for _, p := range keys(unreadable) {
		if d := l.unreadable(p, unreadable[p]); !s.broken {
			d.Severity = hcl.DiagWarning
		}
	}
}

// texts are the flow files of a module.
func (s *source) texts() []siblings.File {
	var all []siblings.File
	for _, f := range s.files {
		all = append(all, siblings.File{Name: f.display, Bytes: f.bytes})
	}
	return all
}

// passOver reports another file of the directory that cannot be parsed. That is an error
// only when something that is needed may be in it.
func (l *loader) passOver(s *source, diags hcl.Diagnostics) {
	if s.broken {
		l.diags.Take(RuleSyntax, diags)
		return
	}
	first := diags.Errs()[0].(*hcl.Diagnostic)
	l.diags.Add(RuleSyntax, diag.Subject(first), "File left out", "%s cannot be parsed, and is left out: %s needs nothing of it. %s: %s", diag.Subject(first).Filename, s.files[0].display, first.Summary, first.Detail).Severity = hcl.DiagWarning
}

// findFolder makes modules of a directory and the directories in it.
func (l *loader) findFolder(root string) []*source {
	var out []*source
	modules, from := map[string]*source{}, l.diags.Count()
	err := filepath.WalkDir(root, func(p string, e fs.DirEntry, err error) error {
		hidden := p != root && strings.HasPrefix(e.Name(), ".")
		switch {
		case err != nil && p == root:
			l.unreadable(p, err)
		case err != nil:
			l.unsearched = append(l.unsearched, l.unreadable(p, err))
		case e.IsDir() && hidden:
			return fs.SkipDir
		case !e.IsDir() && (isFlowFile(e.Name()) || isAutomatic(e.Name())):
			folder := filepath.Dir(p)
			if modules[folder] == nil {
				modules[folder] = &source{folder: folder, prefix: prefixOf(root, folder), read: jail(folder)}
				out = append(out, modules[folder])
			}
			l.open(modules[folder], p)
		}
		return nil
	})
	if err != nil {
		l.unreadable(root, err)
	}
	out = slices.DeleteFunc(out, func(s *source) bool { return len(s.files) == 0 })
	for _, s := range out {
		slices.SortStableFunc(s.values, weakestFirst)
	}
	if len(out) == 0 && !l.diags.Failed(from) {
		l.diags.Add(RulePath, diag.StartOf(root), "No flow files", "There is no *.hcl or *.hcl.json file in %s or below it.", root)
	}
	return out
}

func prefixOf(root, folder string) string {
	rel, err := filepath.Rel(root, folder)
	if err != nil || rel == "." {
		return ""
	}
	return filepath.ToSlash(rel) + "/"
}

// weakestFirst puts flowhost.vars.hcl before the files of values that add to it.
func weakestFirst(a, b sourceFile) int {
	rank := func(f sourceFile) int {
		if stem, _ := hclName(f.name); stem == "flowhost.vars" {
			return 0
		}
		return 1
	}
	return rank(a) - rank(b)
}

// open reads a file into a module.
func (l *loader) open(s *source, p string) {
	content, err := readSource(p)
	if err != nil {
		l.unreadable(p, err)
		return
	}
	f := sourceFile{name: filepath.Base(p), display: p, bytes: content}
	if isFlowFile(f.name) {
		s.files = append(s.files, f)
		return
	}
	s.values = append(s.values, f)
}

// readSource reads a file no further than to see that it is too large. Opening a
// pipe would wait for a writer.
func readSource(p string) ([]byte, error) {
	if info, err := os.Stat(p); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file: move it out of the directory, or rename it", p)
	}
	f, err := os.Open(p)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, syntax.MaxSource+1))
}

// maxDataFile bounds what a file function reads: it is recorded with the flows,
// in one record of the journal.
const maxDataFile = 1 << 20

// jail reads files below a directory and nothing outside it, whatever links point to.
func jail(folder string) func(string) ([]byte, error) {
	return func(name string) ([]byte, error) {
		root, err := os.OpenRoot(folder)
		if err != nil {
			return nil, err
		}
		defer root.Close()
		name = filepath.FromSlash(name)
		if info, err := root.Stat(name); err == nil && info.IsDir() {
			return nil, fmt.Errorf("%s is a directory", name)
		} else if err == nil && !info.Mode().IsRegular() {
			return nil, fmt.Errorf("%s is not a regular file", name)
		}
		f, err := root.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		content, err := io.ReadAll(io.LimitReader(f, maxDataFile+1))
		if err == nil && len(content) > maxDataFile {
			err = fmt.Errorf("%s is larger than %d bytes, the most that is kept with the flows: give it to the task another way", name, maxDataFile)
		}
		return content, err
	}
}

// recorded reads the files that a definition holds.
func recorded(files map[string][]byte) func(string) ([]byte, error) {
	return func(name string) ([]byte, error) {
		content, ok := files[path.Clean(name)]
		if !ok {
			return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
		}
		return content, nil
	}
}

// IsSource reports whether a file of that name is read with the directory that it
// lies in: a flow file, or one that gives values for variables.
func IsSource(name string) bool { return isFlowFile(name) || isAutomatic(name) }

// Sources are the paths of the files that the flows of a loaded set were made of:
// flow files, files that functions have read, and the modules of plugins. Paths
// are relative where those given to [Load] were.
func (s *Set) Sources() []string {
	var all []string
	for _, f := range s.Flows {
		folder := filepath.Dir(f.Range.Filename)
		add := func(name string) {
			if name = filepath.FromSlash(name); !filepath.IsAbs(name) {
				name = filepath.Join(folder, name)
			}
			all = append(all, name)
		}
		for name := range f.Definition.Files {
			add(name)
		}
		for source := range f.Definition.Plugins {
			add(source)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Format gives a flow file its canonical layout. Files in the JSON syntax come
// back as they are. With a syntax error the source comes back unchanged beside
// the diagnostics.
func Format(src []byte, filename string) ([]byte, hcl.Diagnostics) {
	var r diag.Report
	_, diags := syntax.ParseFile(src, filename)
	if r.Take(RuleSyntax, diags) || strings.HasSuffix(filename, ".json") {
		return src, r.Sorted()
	}
	return hclwrite.Format(src), nil
}
