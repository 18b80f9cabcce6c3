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

// AddTypes registers the types of a function.
func AddTypes[In, Out any](p *Plugin) { p.types = append(p.types, warmTypes[In, Out]) }

// RunWarmUp brings the plugin into that state. It returns what the export
// returns; the host does without when it fails.
func (p *Plugin) RunWarmUp(h Host) int32 {
	p.warmTypes()
	for _, do := range p.warmups {
		if err := do(); err != nil {
			return report(h, err)
		}
	}
	growHeap()
	p.warmTypes() // a collection gives up what the allocator and pools have at hand
	return statusOK
}

func (p *Plugin) warmTypes() {
	for _, warm := range p.types {
		warm()
	}
}

// growHeap leaves the heap collected, with room in it, and with a span at hand
// for small objects of each size: the first allocation of a size looks for one,
// and each call would begin with its first.
func growHeap() {
	room := make([]byte, warmHeap)
	runtime.KeepAlive(room)
	runtime.GC()
	for size := 8; size <= maxWarmObject; size += max(8, size/8) {
		runtime.KeepAlive(make([]byte, size))
		runtime.KeepAlive(make([]*byte, size/8))
	}
}

// maxWarmObject is in bytes.
const maxWarmObject = 4 << 10

// warmTypes makes encoding/json look at the types, which it does once for each
// of them and remembers.
func warmTypes[In, Out any]() {
	var in In
	var out Out
	for _, v := range []reflect.Value{reflect.ValueOf(&in).Elem(), reflect.ValueOf(&out).Elem()} {
		fill(v, maxFill)
	}
	if data, err := Encode(in); err == nil {
		_ = json.Unmarshal(data, new(In)) // a type may have its own idea of what is valid
	}
	_, _ = Encode(out) // the same
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
