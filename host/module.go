package host

import (
	"fmt"
	"strings"

	"github.com/flowhost/flowhost/host/internal/manifest"
	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/sdk/abi"
)

// Names of ABIs, as a [run.Signature] states them.
const (
	ABIFlowhost = "flowhost"
	ABIWASI     = "wasi"
)

// commandFunction is the name of a command's only function when no manifest
// gives it another.
const commandFunction = "main"

// functionShape is the type of exports that can be called as functions.
const functionShape = "() -> i32"

// module is what the host knows of one module. It does not change once made.
type module struct {
	image     *image
	signature run.Signature
	manifest  *abi.Manifest
	origin    string            // where the manifest comes from, one of the Manifest constants
	exports   map[string]string // the export that serves a function, by the function's name
	fault     *ModuleError      // why it cannot be called; nil for a good one
}

func newModule(digest string, img *image) *module {
	m := &module{image: img, exports: map[string]string{}}
	m.signature.Digest = digest
	return m
}

// minMemory is the bytes of linear memory that an instance starts with.
func (m *module) minMemory() int64 { return m.image.need() }

// weight is about the bytes that a module takes in this process, beside its
// instances; nil takes next to none.
func (m *module) weight() int64 {
	const nothing = 1 << 10
	if m == nil {
		return nothing
	}
	return m.image.weight()
}

// close frees what a module has; nil has nothing.
func (m *module) close() error {
	if m == nil {
		return nil
	}
	return m.image.close()
}

// resolve finds the function of that name, or the default one for "".
func (m *module) resolve(name string) (function, export string, failure *run.Failure) {
	if name == "" {
		name = m.signature.Default()
	}
	if export, ok := m.exports[name]; ok {
		return name, export, nil
	}
	var names []string
	for _, f := range m.signature.Functions {
		names = append(names, f.Name)
	}
	known := strings.Join(names, ", ")
	if name == "" {
		return "", "", rejected(run.CodeFunction, "the module has several functions and none is named main, name one of them: %s", known)
	}
	return "", "", rejected(run.CodeFunction, "the module has no function %q, it has: %s", name, known)
}

// inferABI infers from imports and exports how to call a module.
func inferABI(form *shape, offered offers) (string, *ModuleError) {
	if fault := checkImports(form.imports, offered); fault != nil {
		return "", fault
	}
	command := form.exportType(abi.ExportStart) != ""
	if command && form.importsFrom(abi.Module) {
		return "", &ModuleError{
			Reason: "a command (it exports _start) that imports " + abi.Module + ", which only reactors can use",
			Hint:   "build it with -buildmode=c-shared, or let it read stdin and write stdout",
		}
	}
	if form.memory == nil || form.memory.Name != abi.ExportMemory {
		return "", &ModuleError{
			Reason: "no memory is exported under the name memory",
			Hint:   "let the linker export it: without it no input can be given",
		}
	}
	if command {
		return ABIWASI, nil
	}
	return ABIFlowhost, nil
}

// checkImports finds the first import that the host does not offer.
func checkImports(imports []Extern, offered offers) *ModuleError {
	for _, i := range imports {
		functions, known := offered[i.Module]
		want := functions[i.Name]
		switch {
		case !known:
			return &ModuleError{Reason: fmt.Sprintf("imports %s %s from module %q, which does not exist here", i.Kind, i.Name, i.Module), Hint: importHint(i.Module)}
		case i.Kind != KindFunction || want == "":
			return &ModuleError{
				Reason: fmt.Sprintf("imports %s %q from %s, which has none of that name", i.Kind, i.Name, i.Module),
				Hint:   "build it with an SDK of this version",
			}
		case i.Type != want:
			return &ModuleError{
				Reason: fmt.Sprintf("imports %s from %s with the type %s, it is %s", i.Name, i.Module, i.Type, want),
				Hint:   "declare it with that type",
			}
		}
	}
	return nil
}

// importHint states what a module was built for, going by what it imports.
func importHint(module string) string {
	const offer = "modules may import wasi_snapshot_preview1 and " + abi.Module
	switch {
	case strings.HasPrefix(module, "flowhost:"):
		return "it was built for another version of flowhost: " + offer
	case strings.HasPrefix(module, "extism:"):
		return "it is an Extism plugin: " + offer
	case module == "gojs" || module == "go":
		return "it was built with GOOS=js: build it with GOOS=wasip1 GOARCH=wasm"
	case module == "wasi_unstable":
		return "build it with a newer toolchain, for wasip1"
	case strings.HasPrefix(module, "wasi:"):
		return "it was built for WASI 0.2: build it for wasip1"
	}
	return offer
}

// plainFunctions is the exports that can be called as functions by themselves.
func plainFunctions(form *shape) []string {
	var names []string
	for _, e := range form.exports {
		if e.Kind == KindFunction && e.Type == functionShape && manifest.ValidName(e.Name) {
			names = append(names, e.Name)
		}
	}
	return names
}
