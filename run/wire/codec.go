package wire

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/flowhost/flowhost/run"
)

// The stored form of commits and snapshots: numbers are varints, signed ones in
// zigzag form; times are nanoseconds, each as the difference to the previous one;
// repeated strings are numbered as they appear. JSON is kept byte for byte.

// encoder appends values in their stored form.
type encoder struct {
	out   []byte
	names map[string]uint64 // numbers of the strings so far, from 1
	order []string          // the strings by number
	last  int64             // the last written time
	blobs []run.Blob        // payloads that are stored separately
	err   error             // of the first value that cannot be encoded
}

func (e *encoder) uint(n uint64) { e.out = binary.AppendUvarint(e.out, n) }
func (e *encoder) int(n int64)   { e.out = binary.AppendVarint(e.out, n) }
func (e *encoder) count(n int)   { e.uint(uint64(n)) }

func (e *encoder) bool(b bool) {
	if b {
		e.out = append(e.out, 1)
		return
	}
	e.out = append(e.out, 0)
}

// text writes a string that is unlikely to be repeated.
func (e *encoder) text(s string) {
	e.count(len(s))
	e.out = append(e.out, s...)
}

// name writes a string that is likely to be repeated: 0 and the string the first time,
// its number afterwards.
func (e *encoder) name(s string) {
	if n := e.names[s]; n > 0 {
		e.uint(n)
		return
	}
	e.uint(0)
	e.text(s)
	if e.names == nil {
		e.names = map[string]uint64{}
	}
	e.order = append(e.order, s)
	e.names[s] = uint64(len(e.order))
}

// mark is a state to which an encoder can return.
type mark struct {
	bytes, names, blobs int
	last                int64
}

func (e *encoder) mark() mark { return mark{len(e.out), len(e.order), len(e.blobs), e.last} }

func (e *encoder) undo(m mark) {
	for _, s := range e.order[m.names:] {
		delete(e.names, s)
	}
	clear(e.blobs[m.blobs:])
	e.out, e.order, e.blobs = e.out[:m.bytes], e.order[:m.names], e.blobs[:m.blobs]
	e.last, e.err = m.last, nil
}

// reset empties the encoder and keeps its memory.
func (e *encoder) reset() {
	clear(e.names)
	clear(e.order)
	clear(e.blobs)
	e.out, e.order, e.blobs = e.out[:0], e.order[:0], e.blobs[:0]
	e.last, e.err = 0, nil
}

// time writes a time between the years 1678 and 2262, whose nanoseconds fit into 64
// bits, or the zero time.
func (e *encoder) time(t time.Time) {
	if t.IsZero() {
		e.bool(false)
		return
	}
	e.bool(true)
	ns := t.UnixNano()
	e.int(ns - e.last)
	e.last = ns
}

// bytes writes bytes. It distinguishes nil from empty.
func (e *encoder) bytes(b []byte) {
	if b == nil {
		e.uint(0)
		return
	}
	e.count(len(b) + 1)
	e.out = append(e.out, b...)
}

// json writes values that are too rare for their own encoding.
func (e *encoder) json(v any) {
	b, err := run.EncodeJSON(v)
	if err != nil && e.err == nil {
		e.err = err
	}
	e.bytes(b)
}

// payload writes JSON from outside, which may be large: from run.BlobSize on it writes a
// reference to a blob.
func (e *encoder) payload(data json.RawMessage) {
	if len(data) < run.BlobSize {
		e.bytes(data)
		return
	}
	blob, ref := run.NewBlob(data)
	e.bytes(ref)
	e.blobs = append(e.blobs, blob)
}

func encodeMap[V any](e *encoder, m map[string]V, value func(V)) {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	if m == nil {
		e.uint(0)
		return
	}
	e.count(len(m) + 1)
	for _, k := range keys {
		e.name(k)
		value(m[k])
	}
}

// decoder reads the output of an encoder. After the first error every value is empty.
type decoder struct {
	in    []byte
	pos   int
	names []string
	last  int64
	err   error
}

var errCutOff = errors.New("unexpected end")

func (d *decoder) fail(err error) {
	if d.err == nil {
		d.err = fmt.Errorf("byte %d: %w", d.pos, err)
	}
}

// more reports whether bytes are left.
func (d *decoder) more() bool { return d.err == nil && d.pos < len(d.in) }

func (d *decoder) uint() uint64 {
	if d.err != nil {
		return 0
	}
	n, size := binary.Uvarint(d.in[d.pos:])
	if size <= 0 {
		d.fail(errCutOff)
		return 0
	}
	d.pos += size
	return n
}

func (d *decoder) int() int64 {
	if d.err != nil {
		return 0
	}
	n, size := binary.Varint(d.in[d.pos:])
	if size <= 0 {
		d.fail(errCutOff)
		return 0
	}
	d.pos += size
	return n
}

// small reads a number that fits into an int on every platform.
func (d *decoder) small() int {
	n := d.int()
	if n > math.MaxInt32 || n < math.MinInt32 {
		d.fail(errors.New("a number is out of range"))
		return 0
	}
	return int(n)
}

// count reads the number of following items, each of at least one byte.
func (d *decoder) count() int {
	n := d.uint()
	if n > uint64(len(d.in)-d.pos) {
		d.fail(errCutOff)
		return 0
	}
	return int(n)
}

func (d *decoder) bool() bool {
	b := d.take(1)
	return len(b) == 1 && b[0] != 0
}

func (d *decoder) take(n int) []byte {
	if d.err != nil {
		return nil
	}
	if n > len(d.in)-d.pos {
		d.fail(errCutOff)
		return nil
	}
	d.pos += n
	return d.in[d.pos-n : d.pos]
}

func (d *decoder) text() string { return string(d.take(d.count())) }

func (d *decoder) name() string {
	n := d.uint()
	if n > 0 {
		if n > uint64(len(d.names)) {
			d.fail(errors.New("unknown number of a string"))
			return ""
		}
		return d.names[n-1]
	}
	s := d.text()
	d.names = append(d.names, s)
	return s
}

func (d *decoder) time() time.Time {
	if !d.bool() {
		return time.Time{}
	}
	d.last += d.int()
	return time.Unix(0, d.last).UTC()
}

// bytes returns a copy, so that decoded values do not keep the whole commit in memory.
func (d *decoder) bytes() []byte {
	n := d.uint()
	if n == 0 || d.err != nil {
		return nil
	}
	if n-1 > uint64(len(d.in)-d.pos) {
		d.fail(errCutOff)
		return nil
	}
	b := make([]byte, n-1)
	copy(b, d.take(int(n-1)))
	return b
}

func (d *decoder) json(into any) {
	b := d.bytes()
	if d.err != nil {
		return
	}
	if err := json.Unmarshal(b, into); err != nil {
		d.fail(err)
	}
}

func decodeMap[V any](d *decoder, value func() V) map[string]V {
	n := d.uint()
	if n == 0 || d.err != nil {
		return nil
	}
	if n-1 > uint64(len(d.in)-d.pos) {
		d.fail(errCutOff)
		return nil
	}
	m := make(map[string]V, min(n-1, 64))
	for range n - 1 {
		k := d.name()
		m[k] = value()
		if d.err != nil {
			return nil
		}
	}
	return m
}
