package archtest

import (
	"fmt"
	"go/ast"
	"path"
	"slices"
	"strconv"
)

// CheckDocs finds packages without a package doc.
func CheckDocs(packages []*Package) []Violation {
	var found []Violation
	for _, p := range packages {
		documented := slices.ContainsFunc(p.Files, func(f *File) bool {
			return f.Syntax.Doc != nil && (p.testOnly() || !f.Test)
		})
		if !documented {
			found = append(found, Violation{p.Folder, "the package has no package comment",
				"its reader learns there what it promises, what it starts and what it never does"})
		}
	}
	return found
}

// CheckContexts finds contexts that are made from nothing. cmd may, because the
// process begins there; so may guests, which are separate programs, and what
// only tests use.
func CheckContexts(packages []*Package) []Violation {
	return checkFiles(packages, []string{"cmd", "internal", "bus/internal/bustest", "examples", "plugins"}, func(f *File) []Violation {
		var found []Violation
		local := importedAs(f, "context")
		ast.Inspect(f.Syntax, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok || !isName(s.X, local) || s.Sel.Name != "Background" && s.Sel.Name != "TODO" {
				return true
			}
			found = append(found, Violation{fmt.Sprintf("%s:%d", f.Path, f.line(s)), "context." + s.Sel.Name + " outside cmd",
				"whoever calls must be able to end every wait: take a context from the caller"})
			return true
		})
		return found
	})
}

// CheckInits finds init functions. Guests may have them: a reactor's main is not
// run, so init is where its functions are registered.
func CheckInits(packages []*Package) []Violation {
	return checkFiles(packages, []string{"examples", "plugins"}, func(f *File) []Violation {
		var found []Violation
		for _, d := range f.Syntax.Decls {
			if d, ok := d.(*ast.FuncDecl); ok && d.Recv == nil && d.Name.Name == "init" {
				found = append(found, Violation{fmt.Sprintf("%s:%d", f.Path, f.line(d)), "an init function",
					"what happens at start is written down in main, where it can be read, ordered and left out"})
			}
		}
		return found
	})
}

// OneThread is the directories of packages that write to the memory of guests.
var OneThread = []string{"host/internal/memory", "host/internal/wasi", "host/internal/guestfs"}

// CheckThreads finds goroutines that packages in the given directories start, also those
// that run a function later.
func CheckThreads(packages []*Package, folders []string) []Violation {
	return checkFiles(packages, nil, func(f *File) []Violation {
		if !slices.ContainsFunc(folders, func(folder string) bool { return within(path.Dir(f.Path), folder) }) {
			return nil
		}
		var found []Violation
		ast.Inspect(f.Syntax, func(n ast.Node) bool {
			s, selects := n.(*ast.SelectorExpr)
			_, starts := n.(*ast.GoStmt)
			if starts || selects && (s.Sel.Name == "Go" || s.Sel.Name == "AfterFunc") {
				found = append(found, Violation{fmt.Sprintf("%s:%d", f.Path, f.line(n)), "a goroutine",
					"only the thread of a call may write to its guest's memory: the kernel's count of that thread's page faults decides what is restored"})
			}
			return true
		})
		return found
	})
}

// checkFiles runs a check over all files that are not tests, outside the given
// directories.
func checkFiles(packages []*Package, exempt []string, check func(*File) []Violation) []Violation {
	var found []Violation
	for _, p := range packages {
		if slices.ContainsFunc(exempt, func(folder string) bool { return within(p.Folder, folder) }) {
			continue
		}
		for _, f := range p.Files {
			if !f.Test {
				found = append(found, check(f)...)
			}
		}
	}
	return found
}

// importedAs is the name under which the file knows a package, "" when it does
// not import it.
func importedAs(f *File, pkg string) string {
	for _, spec := range f.Syntax.Imports {
		if imported, err := strconv.Unquote(spec.Path.Value); err != nil || imported != pkg {
			continue
		}
		if spec.Name != nil {
			return spec.Name.Name
		}
		return path.Base(pkg)
	}
	return ""
}

func isName(e ast.Expr, name string) bool {
	id, ok := e.(*ast.Ident)
	return ok && name != "" && id.Name == name
}
