package guest

import (
	"encoding/json"
	"reflect"
	"runtime"
)

// warmHeap is the bytes of heap that a plugin has at hand when a call begins, so
// that small calls need not grow the guest's memory.
const warmHeap = 4 << 20

// WarmUp registers something to be done once, before the host keeps the state
// with which all calls begin.
func (p *Plugin) WarmUp(do func() error) { p.warmups = append(p.warmups, do) }

// RunWarmUp brings the plugin into that state. It returns what the export
// returns; the host does without when it fails.
func (p *Plugin) RunWarmUp(h Host) int32 {
	for _, do := range p.warmups {
		if err := do(); err != nil {
			return report(h, err)
		}
	}
	if _, err := Encode(p.Manifest()); err != nil { // what is reused of the encoder's own
		return report(h, err)
	}
	growHeap()
	return statusOK
}

// growHeap leaves the heap collected, with room in it.
func growHeap() {
	room := make([]byte, warmHeap)
	runtime.KeepAlive(room)
	runtime.GC()
}

// WarmTypes makes encoding/json look at the types, which it does once for each
// of them and remembers.
func WarmTypes[In, Out any]() error {
	var in In
	var out Out
	for _, v := range []reflect.Value{reflect.ValueOf(&in).Elem(), reflect.ValueOf(&out).Elem()} {
		fill(v, maxFill)
	}
	if data, err := Encode(in); err == nil {
		_ = json.Unmarshal(data, new(In)) // a type may have its own idea of what is valid
	}
	_, _ = Encode(out) // the same
	return nil
}

// maxFill is how deeply nested types are looked at. They may be recursive.
const maxFill = 8

// fill gives each slice, map and pointer in v one element, so that an encoder
// gets to see all types.
func fill(v reflect.Value, depth int) {
	if depth == 0 || !v.CanSet() {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), depth-1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), depth-1)
	case reflect.Map:
		element := reflect.New(v.Type().Elem()).Elem()
		fill(element, depth-1)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.Zero(v.Type().Key()), element)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), depth-1)
		}
	}
}
