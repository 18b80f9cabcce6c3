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

	"github.com/flowhost/flowhost/flows/internal/diag"
	"github.com/flowhost/flowhost/flows/internal/syntax"
)

// source is the directory of one module: its flow files and what they may read.
type source struct {
	folder string // where plugin paths start; "" for a restored module
	prefix string // of flow names: "", or "billing/"
	files  []sourceFile
	values []sourceFile // files that give values for variables
	read   func(name string) ([]byte, error)
}

// sourceFile is a file of a module. Its display name is used in diagnostics.
type sourceFile struct {
	name    string // in its directory
	display string
	bytes   []byte
}

func (s *source) at() hcl.Range {
	if len(s.files) > 0 {
		return diag.StartOf(s.files[0].display)
	}
	return diag.StartOf(s.folder)
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
			if err != nil {
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
			out = append(out, l.findFile(p)...)
		}
	}
	return out
}

func (l *loader) unreadable(p string, err error) *hcl.Diagnostic {
	if errors.Is(err, fs.ErrNotExist) {
		return l.diags.Add(RulePath, diag.StartOf(p), "No such file or directory", "There is no %s.", p)
	}
	return l.diags.Add(RulePath, diag.StartOf(p), "Cannot read", "%s.", err)
}

// findFile makes a module of one file.
func (l *loader) findFile(p string) []*source {
	if !isFlowFile(filepath.Base(p)) {
		l.diags.Add(RulePath, diag.StartOf(p), "Not a flow file", "%s is not read: the names of flow files end in .hcl or .hcl.json, and *.vars.hcl, *.test.hcl and flowhost.hcl are for other things.", p)
		return nil
	}
	s := &source{folder: filepath.Dir(p), read: jail(filepath.Dir(p))}
	l.open(s, p)
	return []*source{s}
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
