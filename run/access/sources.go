package access

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// Sources bounds where the secrets of flow files may be. What it does not include is denied,
// and so is a kind of source that is absent.
//
// A variable is named, with * at the end for any rest of its name. Files and secrets of Vault
// are paths, in which * is one segment, and ** at the end everything below.
type Sources struct {
	Env   []string `json:"env,omitempty"`
	File  []string `json:"file,omitempty"` // absolute and clean, with slashes
	Age   []string `json:"age,omitempty"`  // likewise: files that age has encrypted
	Vault []string `json:"vault,omitempty"`
}

// Path is the absolute path of the file that holds a secret, empty for other sources.
func (s *Secret) Path() string {
	path := filepath.FromSlash(cmp.Or(s.File, s.Age))
	switch {
	case path == "":
		return ""
	case filepath.IsAbs(path):
		return filepath.Clean(path)
	}
	return filepath.Join(s.Folder, path)
}

// SourceExcess returns what the operator does not allow of where a secret is, nil if it may be
// there. Without an allow block, and for a secret of the settings, every source is allowed.
// Paths are compared as they are written: where links lead is for whoever reads the file to
// check, by [IncludesPath].
func (a *Allow) SourceExcess(s *Secret) *Excess {
	if a == nil || s.Operator {
		return nil
	}
	bound := cmp.Or(a.Sources, new(Sources))
	path := filepath.ToSlash(s.Path())
	switch {
	case s.Env != "":
		return sourceExcess(bound.Env, "env", s.Env, variableIncludes)
	case s.File != "":
		return sourceExcess(bound.File, "file", path, pathIncludes)
	case s.Age != "":
		return sourceExcess(bound.Age, "age", path, pathIncludes)
	case s.Vault != "":
		return sourceExcess(bound.Vault, "vault", s.Vault, pathIncludes)
	}
	return nil // it has no source, and is reported where it is read
}

func sourceExcess(bound []string, kind, place string, includes func(pattern, place string) bool) *Excess {
	if slices.ContainsFunc(bound, func(pattern string) bool { return includes(pattern, place) }) {
		return nil
	}
	return &Excess{Key: "sources", Entry: "the source " + kind + " " + place, Line: SourceLine(kind, place)}
}

// SourceFault is the fault of an operation that needs a secret with such an excess. The place
// is for the operator only.
func (a *Allow) SourceFault(flow, name string, x *Excess) *Fault {
	f := &Fault{
		Code: CodeDenied, Target: name, Rule: RuleOperator,
		Message: fmt.Sprintf("secret %q refused: the operator does not allow flow %s its source", name, flow),
	}
	inside := *f
	inside.Message = fmt.Sprintf("secret %q refused: the operator does not allow flow %s %s", name, flow, x.Entry)
	inside.Add = fmt.Sprintf("%s, in allow %q { … } of the settings", x.Line, cmp.Or(a.Pattern, flow))
	f.Inside = &inside
	return f
}

// SourceLine is the line of an allow block that allows a source.
func SourceLine(kind, place string) string { return fmt.Sprintf("sources { %s = [%q] }", kind, place) }

// IncludesPath reports whether one of the patterns of files includes an absolute path.
func IncludesPath(patterns []string, path string) bool {
	path = filepath.ToSlash(path)
	return slices.ContainsFunc(patterns, func(pattern string) bool { return pathIncludes(pattern, path) })
}

func variableIncludes(pattern, name string) bool {
	prefix, all := strings.CutSuffix(pattern, "*")
	return pattern == name || all && strings.HasPrefix(name, prefix)
}
