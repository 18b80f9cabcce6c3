package archtest

import (
	"fmt"
	"go/ast"
	"maps"
	"slices"
)

// Bounds of what a reader can take in. They hold for packages without a row in [Larger].
const (
	MaxFiles   = 40  // of a package, without tests
	MaxMethods = 120 // of a type
)

// Larger is the table of packages that have more files than MaxFiles. Its numbers may
// only shrink.
var Larger = map[string]int{
	"flows": 60, // the type checker and the decoders share one context
}

// Nested is the table of structs that still embed a struct that embeds one.
var Nested = []string{
	"host/internal/wasm.body", "host/internal/wasm.instrumenter", // readers and writers of one format
	"internal/schedsim.attempt", "internal/schedsim.openRun", "internal/schedsim.task",
	"run.ScheduleStatus", // whose JSON is flat
	"scheduler.leaper",
}

// CheckSizes finds packages with too many files and types with too many methods.
func CheckSizes(packages []*Package, larger map[string]int) []Violation {
	var found []Violation
	for _, p := range packages {
		files, methods := 0, map[string]int{}
		for _, f := range p.Files {
			if f.Test {
				continue
			}
			files++
			for _, d := range f.Syntax.Decls {
				if d, ok := d.(*ast.FuncDecl); ok && d.Recv != nil {
					methods[typeName(d.Recv.List[0].Type)]++
				}
			}
		}
		most, listed := larger[p.Folder]
		switch {
		case listed && files != most:
			found = append(found, Violation{p.Folder, fmt.Sprintf("it has %d files, and archtest.Larger has %d", files, most),
				"set the row to the number of files; it may only shrink"})
		case !listed && files > MaxFiles:
			found = append(found, Violation{p.Folder, fmt.Sprintf("it has %d files, and %d are the most", files, MaxFiles),
				"move what has a duty of its own to a package of its own"})
		}
		for _, name := range slices.Sorted(maps.Keys(methods)) {
			if n := methods[name]; n > MaxMethods {
				found = append(found, Violation{p.Folder + "." + name, fmt.Sprintf("it has %d methods, and %d are the most", n, MaxMethods),
					"move the methods that use a part of its fields to a type with these fields"})
			}
		}
	}
	return found
}

// CheckEmbedding finds structs that embed a struct of their package that embeds one, too:
// a field of the innermost reads as if it were the outermost's own.
func CheckEmbedding(packages []*Package, nested []string) []Violation {
	var found []Violation
	for _, p := range packages {
		embedded := map[string][]string{} // by struct, the structs of this package that it embeds
		places := map[string]string{}
		for _, f := range p.Files {
			if !f.Test {
				embeddings(f, embedded, places)
			}
		}
		for _, outer := range slices.Sorted(maps.Keys(embedded)) {
			if slices.Contains(nested, p.Folder+"."+outer) {
				continue
			}
			for _, inner := range embedded[outer] {
				if next, ok := embedded[inner]; ok && len(next) > 0 {
					found = append(found, Violation{places[outer], fmt.Sprintf("%s embeds %s, which embeds %s", outer, inner, next[0]),
						"give one of them a name: a reader must see whose field it is"})
				}
			}
		}
	}
	return found
}

// embeddings adds the structs of a file with the structs of the same package that they
// embed. Only names that are structs count, in the end.
func embeddings(f *File, embedded map[string][]string, places map[string]string) {
	ast.Inspect(f.Syntax, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok {
			return true
		}
		s, ok := spec.Type.(*ast.StructType)
		if !ok {
			return true
		}
		places[spec.Name.Name] = fmt.Sprintf("%s:%d", f.Path, f.line(spec))
		for _, field := range s.Fields.List {
			if name := typeName(field.Type); len(field.Names) == 0 && name != "" {
				embedded[spec.Name.Name] = append(embedded[spec.Name.Name], name)
			}
		}
		return true
	})
}

// typeName is the name of a type of the package itself, "" for any other.
func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return typeName(e.X)
	case *ast.IndexExpr:
		return typeName(e.X)
	case *ast.IndexListExpr:
		return typeName(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}
