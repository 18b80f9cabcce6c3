package varint

import (
	"encoding/binary"
	"time"
)

// AppendText writes a string after its length.
func AppendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// AppendTime writes UTC nanoseconds, 0 for the zero time.
func AppendTime(b []byte, t time.Time) []byte {
	if t.IsZero() {
		return binary.AppendVarint(b, 0)
	}
	return binary.AppendVarint(b, t.UnixNano())
}

// Reader reads fields one after the other; broken means that there was not
// what there should be.
type Reader struct {
	Rest   []byte
	Broken bool
}

// Number reads an unsigned integer.
func (r *Reader) Number() uint64 {
	v, n := binary.Uvarint(r.Rest)
	return take(r, v, n)
}

// Signed reads a signed integer.
func (r *Reader) Signed() int64 {
	v, n := binary.Varint(r.Rest)
	return take(r, v, n)
}

// Time reads a time of AppendTime.
func (r *Reader) Time() time.Time {
	v := r.Signed()
	if v == 0 {
		return time.Time{}
	}
	return time.Unix(0, v).UTC()
}

// Text reads a string of AppendText.
func (r *Reader) Text() string {
	n := r.Number()
	if n > uint64(len(r.Rest)) {
		r.Broken, r.Rest = true, nil
		return ""
	}
	s := string(r.Rest[:n])
	r.Rest = r.Rest[n:]
	return s
}

// take passes n bytes, that of a varint.
func take[T uint64 | int64](r *Reader, v T, n int) T {
	if n <= 0 {
		r.Broken, r.Rest = true, nil
		return 0
	}
	r.Rest = r.Rest[n:]
	return v
}
