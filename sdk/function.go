package sdk

import (
	"reflect"

	"github.com/flowhost/flowhost/sdk/abi"
	"github.com/flowhost/flowhost/sdk/internal/guest"
)

// Function registers fn as a function that tasks can call by name. It belongs
// into an init function of the plugin. The function named "main" is the one that
// a task calls which names none; a plugin with one function needs no such name.
//
// The types of input and output are written into the manifest as JSON Schema, as
// far as encoding/json decides them: flows are checked against them before they
// run. A field is required unless it has the option omitempty or omitzero, or, of
// the input, is a pointer.
//
// It panics when the name is empty, reserved (flowhost_…, memory, _start,
// _initialize) or taken, or when fn is nil: the plugin then cannot be loaded,
// and the message reports why.
func Function[In, Out any](name string, fn func(Context, In) (Out, error)) Registration {
	if fn == nil {
		panic("flowhost: function " + name + " is nil")
	}
	guest.Registered.Add(name, guest.Typed(func(c *guest.Call, in In) (Out, error) {
		return fn(ContextOf(c), in)
	}))
	guest.AddTypes[In, Out](&guest.Registered)
	guest.Registered.SetTypes(name, reflect.TypeFor[In](), reflect.TypeFor[Out]())
	return Registration{name: name}
}

// WarmUp registers what is to be done once, before any call: tables to build,
// templates to parse, whatever package variables keep. The host keeps the state
// that the plugin is in afterwards, and each call begins in it, so that none
// pays for it again. It belongs into an init function.
//
// There is no call yet: fn sees the epoch on its clock and the same random
// numbers on every host. If it fails, or panics, calls begin in the state before
// it, and what it would have prepared must then be made on demand.
func WarmUp(fn func() error) { guest.Registered.WarmUp(fn) }

// Registration is a function that was registered.
type Registration struct{ name string }

// Describe sets the function's description, one sentence, in the manifest.
func (r Registration) Describe(text string) Registration {
	guest.Registered.Describe(r.name, text)
	return r
}

// Config declares the type of the config that the function reads, by a value of
// it: a struct, whose fields may all be left out. The manifest carries the type,
// and flows are checked against it. The value itself does not count.
func (r Registration) Config(config any) Registration {
	guest.Registered.SetConfig(r.name, reflect.TypeOf(config))
	return r
}

// Idempotent declares that the function may be called again with the same input and
// the same idempotency key, after a call whose end nobody saw, and changes nothing
// more. The manifest contains it for those who use the plugin.
func (r Registration) Idempotent() Registration {
	guest.Registered.Idempotent(r.name)
	return r
}

// Info describes a plugin as a whole. All fields are optional.
type Info struct {
	Name        string
	Version     string // of the plugin
	Description string
	Licence     string // an SPDX expression, "Apache-2.0"
	Wants       []Capability
}

// Capability is something that the plugin's functions want to be granted: the
// word that grants it in a flow, such as "files", and why, in words for an
// operator. It grants nothing by itself.
type Capability = abi.Capability

// Plugin sets the manifest's description of the plugin itself. It belongs into
// an init function, and the last call wins.
func Plugin(info Info) {
	guest.Registered.Info(abi.Manifest{
		Name: info.Name, Version: info.Version, Description: info.Description,
		Licence: info.Licence, Capabilities: info.Wants,
	})
}
