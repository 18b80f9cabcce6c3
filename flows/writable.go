package flows

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/flowhost/flowhost/flows/internal/diag"
	"github.com/flowhost/flowhost/flows/internal/syntax"
)

// A guest that could write flow files would get at whatever flows get at, such
// as variables from the environment, the next time that the flows are loaded.
// So what lies in a directory that is granted for writing is not loaded, and cannot
// keep the rest from being loaded.

// writable are the directories that guests may write to: absolute, with links
// resolved.
type writable []string

// add notes a directory. One that does not exist holds nothing yet.
func (w *writable) add(folder string) {
	if abs, err := filepath.Abs(folder); err == nil {
		if real, err := filepath.EvalSymlinks(abs); err == nil {
			*w = append(*w, real)
		}
	}
}

// holds reports whether a file is in one of the directories.
func (w writable) holds(file string) bool {
	if len(w) == 0 {
		return false
	}
	real := realPath(file)
	return slices.ContainsFunc(w, func(folder string) bool {
		rest, ok := strings.CutPrefix(real, folder)
		return ok && (rest == "" || rest[0] == filepath.Separator)
	})
}

// realPath is a file's absolute path with links resolved, as far as it can be
// followed: it may have a name that is too long, or be gone.
func realPath(file string) string {
	abs, err := filepath.Abs(file)
	if err != nil {
		return file
	}
	for dir, rest := abs, ""; ; dir, rest = filepath.Dir(dir), filepath.Join(filepath.Base(dir), rest) {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(real, rest)
		}
		if dir == filepath.Dir(dir) {
			return abs
		}
	}
}

// loadAll loads modules, outer directories first: they state what guests may write.
func (l *loader) loadAll(sources []*source) {
	slices.SortStableFunc(sources, func(a, b *source) int { return cmp.Compare(depth(a.folder), depth(b.folder)) })
	files := map[string][]byte{}
	for _, s := range sources {
		for _, f := range s.files {
			files[f.display] = f.bytes
		}
	}
	l.parsed = syntax.ParseAhead(files)
	for _, s := range sources {
		if l.writable.holds(s.folder) {
			l.leaveOut(s)
			continue
		}
		l.load(s, nil)
	}
	l.diags.Drop(0, func(d *hcl.Diagnostic) bool {
		return slices.Contains(l.unsearched, d) && l.writable.holds(diag.Subject(d).Filename)
	})
}

func depth(folder string) int {
	abs, err := filepath.Abs(folder)
	if err != nil {
		return 0
	}
	return strings.Count(abs, string(filepath.Separator))
}

func (l *loader) leaveOut(s *source) {
	d := l.diags.Add(RuleGrant, s.at(), "Flow files left out",
		"Guests may write to the directory %s: flow files in it are not loaded. If they are yours, move them out of it.", s.folder)
	d.Severity = hcl.DiagWarning
}
