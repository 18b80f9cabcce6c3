package host

import "context"

// sandbox stands between what a call means and how a module is made to run.
// Everything that knows wazero is behind it.
type sandbox interface {
	// prepare makes a module ready to run. It fails with a *ModuleError that
	// has no path yet, or with ctx's error.
	prepare(ctx context.Context, binary []byte) (image, error)

	// offers is what modules may import.
	offers() offers

	// close frees everything. It must not be called while something runs.
	close(ctx context.Context) error
}

// image is a prepared module. It is safe for concurrent use.
type image interface {
	shape() shape

	// run calls an export of type () -> i32, or a command's _start, in an
	// instance that no other call has touched or will touch, and gives what it
	// returned. It fails with errInterrupted, errOutputSize, *exitError or
	// *trapError and never panics.
	run(ctx context.Context, inv *invocation, export string) (status int32, err error)
}

// offers is the types of the functions that can be imported, by module and name.
type offers map[string]map[string]string

// shape is what can be said of a module without running it.
type shape struct {
	size     int64
	imports  []Extern // in the module's order
	exports  []Extern // sorted by name
	memory   *Memory  // the exported one; nil without
	manifest []byte   // custom section flowhost.manifest; nil without
}

// exportType is the type of an exported function, "" where there is none.
func (s *shape) exportType(name string) string {
	for _, e := range s.exports {
		if e.Name == name && e.Kind == KindFunction {
			return e.Type
		}
	}
	return ""
}

// importsFrom reports whether anything is imported from the module.
func (s *shape) importsFrom(module string) bool {
	for _, i := range s.imports {
		if i.Module == module {
			return true
		}
	}
	return false
}

// Extern is one import or export of a module.
type Extern struct {
	Module string `json:"module,omitempty"` // imports only
	Name   string `json:"name"`
	Kind   string `json:"kind"`           // one of the Kind constants
	Type   string `json:"type,omitempty"` // of functions, "(i32, i32) -> i32"
}

// Kinds of externs.
const (
	KindFunction = "function"
	KindTable    = "table"
	KindMemory   = "memory"
	KindGlobal   = "global"
)

// Memory is the linear memory that a module exports, in bytes.
type Memory struct {
	Name string `json:"name"`
	Min  int64  `json:"min"`           // at the start of a call
	Max  int64  `json:"max,omitempty"` // that the module declares; 0 without
}
