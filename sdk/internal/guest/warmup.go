package guest

import (
	"context"
	"reflect"
	"runtime"
	"strconv"
	"time"

	"github.com/flowhost/flowhost/sdk/abi"
)

// warmHeap is the bytes of heap that a plugin has at hand when a call begins, so
// that small calls need not grow the guest's memory. With it, most plugins have less
// than 8 MiB, up to which the host lets a guest compute for longer at a time.
const warmHeap = 3 << 20

// WarmUp registers something to be done once, before the host keeps the state
// with which all calls begin.
func (p *Plugin) WarmUp(do func() error) { p.warmups = append(p.warmups, do) }

// AddTypes registers the types of a function.
func AddTypes[In, Out any](p *Plugin) { p.types = append(p.types, warmTypes[In, Out]) }

// RunWarmUp brings the plugin into that state. It returns what the export
// returns; the host does without when it fails.
func (p *Plugin) RunWarmUp(h Host) int32 {
	for _, do := range p.warmups {
		if err := do(); err != nil {
			return report(h, err)
		}
	}
	growHeap()
	p.rehearse() // last: a collection gives up what the allocator and pools have at hand
	return statusOK
}

// rehearse leaves nothing of a function's own behind: none runs.
func (p *Plugin) rehearse() {
	warmCall()
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

// warmTypes rehearses a call of a function of these types. encoding/json looks at
// them, which it does once for each type and remembers, and the heap is left as a
// call with such values leaves it: what a call then writes are bytes of the same pages.
func warmTypes[In, Out any]() {
	var in In
	var out Out
	fill(reflect.ValueOf(&in).Elem(), maxFill, maxElements)
	fill(reflect.ValueOf(&out).Elem(), maxFill, maxElements)
	input, _ := Encode(in) // a type may have its own idea of what is valid
	function := Typed(func(*Call, In) (Out, error) { return out, nil })
	if Serve(rehearsal{input}, function) != statusOK {
		_, _ = Encode(out) // the input was refused
	}
}

// warmCall rehearses what a function may ask of its call, whatever its types are, and
// a failure.
func warmCall() {
	Serve(rehearsal{}, func(c *Call) ([]byte, error) {
		err := &codecError{code: codeFunction, message: "rehearsal"}
		for _, fn := range rehearsals {
			fn(c)
		}
		c.Log().Info(c.Call().Flow, "error", err, "text", "text", "number", 100_001, "share", 12.5)
		return nil, err
	})
}

// rehearsal is the host of a call that is not one.
type rehearsal struct{ input []byte }

// Read gives the input, and an identity like those of calls.
func (r rehearsal) Read(field abi.Field) ([]byte, error) {
	switch field {
	case abi.FieldInput:
		return r.input, nil
	case abi.FieldIdentity:
		return Encode(abi.Identity{
			Flow: "rehearsal", Run: "01JZZZZZZZZZZZZZZZZZZZZZZZ", Task: "rehearsal", Key: "key", Attempt: 1,
			IdempotencyKey: "01JZZZZZZZZZZZZZZZZZZZZZZZ/rehearsal/key", Scheduled: time.Unix(1_700_000_000, 0).UTC(),
		})
	}
	return nil, nil
}

func (rehearsal) Output([]byte) error             { return nil }
func (rehearsal) Fail([]byte)                     {}
func (rehearsal) Log(abi.Level, string, []byte)   {}
func (rehearsal) TimeLeft() (time.Duration, bool) { return 0, false }
func (rehearsal) Canceled() (time.Duration, bool) { return 0, false }
func (rehearsal) Wait(<-chan struct{}) bool       { return false }

// Operate asks the host, who denies everything as long as there is no call, and makes up an
// answer.
func (rehearsal) Operate(ctx context.Context, kind string, head, body []byte) (Reply, error) {
	_, _ = askHost(ctx, kind, head, body)
	return Reply{Head: []byte(rehearsedReply), Body: []byte("{}")}, nil
}

// Alone does so, too, by the imports.
func (rehearsal) Alone(kind string, head, body []byte, _ bool) (Reply, error) {
	_, _ = askAlone(kind, head, body, false)
	return Reply{Head: []byte(rehearsedReply), Body: []byte("{}")}, nil
}

// Begin does so, and has the answer at once.
func (r rehearsal) Begin(kind string, head, body []byte) (Pending, error) {
	reply, _ := r.Alone(kind, head, body, false) // it is made up
	return done(reply), nil
}

// rehearsedReply has the members of replies to common operations.
const rehearsedReply = `{"status":200,"headers":{"Content-Type":["application/json"]},"url":"https://example.com/","revision":100001}`

// Rehearse adds what is called before the first call, with a host that answers everything:
// what it has touched costs calls nothing.
func Rehearse(fn func(*Call)) struct{} {
	rehearsals = append(rehearsals, fn)
	return struct{}{}
}

var rehearsals []func(*Call)

// Bounds of the values that are made to warm up. Types may be recursive.
const (
	maxFill     = 8  // nested types that are looked at
	maxElements = 27 // elements that a list of lists has
)

// someElements is how many elements a slice or map gets: decoding fewer would not
// make it grow as those of calls do.
const someElements = 3

// fill gives v a value like those of calls: no scalar is zero, since decoders and
// encoders take shorter ways for zeros. Slices and maps have a few elements, as long
// as all of them together are no more than so many, then one, so that an encoder
// gets to see all types. Types with an encoding of their own stay zero: only they
// know what is valid.
func fill(v reflect.Value, depth, elements int) {
	if depth == 0 || !v.CanSet() || v.Kind() != reflect.Pointer && encodesItself(v.Type()) {
		return
	}
	count := someElements
	if elements < count {
		count = 1
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), depth-1, elements)
	case reflect.Slice, reflect.Array:
		if v.Kind() == reflect.Slice {
			v.Set(reflect.MakeSlice(v.Type(), count, count))
		}
		for i := range min(v.Len(), count) {
			fill(v.Index(i), depth-1, elements/count)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for i := range count {
			key, element := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			fillScalar(key, i)
			fill(element, depth-1, elements/count)
			v.SetMapIndex(key, element)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), depth-1, elements)
		}
	default:
		fillScalar(v, 0)
	}
}

// fillScalar gives v the scalar of that number; nothing if it is none.
func fillScalar(v reflect.Value, number int) {
	switch {
	case v.Kind() == reflect.Bool:
		v.SetBool(true)
	case v.CanInt():
		v.SetInt(int64(12 + number))
	case v.CanUint():
		v.SetUint(uint64(12 + number))
	case v.CanFloat():
		v.SetFloat(12.5 + float64(number))
	case v.Kind() == reflect.String: // also a json.Number
		v.SetString(strconv.Itoa(100_001 + number))
	}
}

// encodesItself reports whether values of the type, which is no pointer, are encoded
// by its own methods.
func encodesItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(marshaler) || p.Implements(textMarshaler)
}
