package guest

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/flowhost/flowhost/sdk/abi"
)

// Registered is the plugin that this program is. It is a variable of the
// package because functions are registered before main could pass anything
// around, and main of a plugin does not run at all.
var Registered Plugin

// Plugin is a set of functions with their description in the manifest. The zero
// value is empty. It is filled by init functions and only read afterwards.
type Plugin struct {
	manifest abi.Manifest
	handlers map[string]Handler
	types    []func() // prepare the types of a function
	schemas  map[string]functionTypes
	warmups  []func() error // of the author
}

// Add registers a function. It panics when the name cannot be used or is taken.
func (p *Plugin) Add(name string, fn Handler) {
	switch {
	case name == "":
		panic("flowhost: a function needs a name")
	case reserved(name):
		panic(fmt.Sprintf("flowhost: the function name %q is reserved", name))
	case p.handlers[name] != nil:
		panic(fmt.Sprintf("flowhost: the function %q is registered twice", name))
	}
	if p.handlers == nil {
		p.handlers = map[string]Handler{}
	}
	p.handlers[name] = fn
	p.manifest.Functions = append(p.manifest.Functions, abi.ManifestFunction{Name: name})
}

func reserved(name string) bool {
	switch name {
	case abi.ExportMemory, abi.ExportInit, abi.ExportStart:
		return true
	}
	return strings.HasPrefix(name, abi.ReservedPrefix)
}

// functionTypes are the types of a function; nil where nothing is stated.
type functionTypes struct{ input, output, config reflect.Type }

// SetTypes states the types of a registered function's input and output.
func (p *Plugin) SetTypes(name string, input, output reflect.Type) {
	if p.schemas == nil {
		p.schemas = map[string]functionTypes{}
	}
	p.schemas[name] = functionTypes{input: input, output: output}
}

// SetConfig states the type of a registered function's config.
func (p *Plugin) SetConfig(name string, config reflect.Type) {
	t := p.schemas[name]
	t.config = config
	p.schemas[name] = t
}

// Describe sets the description of a registered function.
func (p *Plugin) Describe(name, text string) {
	p.function(name).Description = text
}

// Idempotent notes that a registered function is meant to be.
func (p *Plugin) Idempotent(name string) {
	p.function(name).Idempotent = true
}

// function is the manifest's description of a registered function.
func (p *Plugin) function(name string) *abi.ManifestFunction {
	i := slices.IndexFunc(p.manifest.Functions, func(f abi.ManifestFunction) bool { return f.Name == name })
	return &p.manifest.Functions[i]
}

// Info sets the manifest's description of the plugin as a whole: all of it but its
// functions and the version of the ABI.
func (p *Plugin) Info(about abi.Manifest) {
	about.Functions = p.manifest.Functions
	p.manifest = about
}

// Serve runs the call that the host has ready. It returns what the export
// returns.
func (p *Plugin) Serve(h Host) int32 {
	name, err := h.Read(abi.FieldFunction)
	if err != nil {
		return report(h, fmt.Errorf("reading the name of the function: %w", err))
	}
	fn, err := p.Lookup(string(name))
	if err != nil {
		return report(h, err)
	}
	return Serve(h, fn)
}

// mainFunction is the name of the function that is called without a name, in a
// plugin that has several.
const mainFunction = "main"

// Lookup finds a function; without a name the only one, or the main one.
func (p *Plugin) Lookup(name string) (Handler, error) {
	switch {
	case name != "":
	case len(p.manifest.Functions) == 1:
		name = p.manifest.Functions[0].Name
	default:
		name = mainFunction
	}
	if fn := p.handlers[name]; fn != nil {
		return fn, nil
	}
	return nil, &codecError{
		code:    codeFunction,
		message: fmt.Sprintf("the plugin has no function %q; it has: %s", name, p.names()),
	}
}

func (p *Plugin) names() string {
	if len(p.manifest.Functions) == 0 {
		return "none"
	}
	names := make([]string, len(p.manifest.Functions))
	for i, f := range p.manifest.Functions {
		names[i] = f.Name
	}
	return strings.Join(names, ", ")
}

// Manifest describes the plugin, its functions in the order in which they were
// registered. Schemas that would make it too long for the host are left out, all
// of them: the plugin works without.
func (p *Plugin) Manifest() abi.Manifest {
	m := p.manifest
	m.ABI = abi.Version
	m.Functions = make([]abi.ManifestFunction, len(p.manifest.Functions))
	for i, f := range p.manifest.Functions {
		types := p.schemas[f.Name]
		if types.input != nil {
			f.Input, f.Output = schemaOf(types.input, taken), schemaOf(types.output, given)
		}
		if types.config != nil {
			f.Config = schemaOf(types.config, preset)
		}
		m.Functions[i] = f
	}
	if text, err := Encode(m); err == nil && len(text) > abi.MaxManifest {
		copy(m.Functions, p.manifest.Functions)
	}
	return m
}

// WriteManifest gives the manifest to the host as output. It returns what the
// export returns.
func (p *Plugin) WriteManifest(h Host) int32 {
	data, err := Encode(p.Manifest())
	if err == nil {
		err = h.Output(data)
	}
	return report(h, err)
}
