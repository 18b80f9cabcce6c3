package wasm

import (
	"fmt"
	"unicode/utf8"
)

// reader reads the binary format within one part of a module. Its first fault
// stays: from then on it is at the end of its part and returns zero values, so that
// only loops need to check err.
type reader struct {
	module   []byte // all of it: positions are offsets in the file
	pos, end int
	section  string
	err      *Error
}

func (r *reader) left() int { return r.end - r.pos }

// refuse notes a fault found at an offset.
func (r *reader) refuse(at int, fault Error) {
	if r.err == nil {
		fault.Section, fault.Offset = r.section, at
		r.err = &fault
	}
	r.pos = r.end
}

// malformed notes something that is no WebAssembly at all.
func (r *reader) malformed(at int, format string, args ...any) {
	r.refuse(at, Error{Reason: fmt.Sprintf(format, args...), Hint: hintDamaged})
}

// unsupported notes the use of a feature. The subject is what uses it.
func (r *reader) unsupported(at int, subject string, f feature) {
	r.refuse(at, Error{Reason: subject + " uses " + f.name + ", which came after WebAssembly 2.0", Hint: f.hint})
}

// over notes a figure over its limit; option is the field of Limits.
func (r *reader) over(at, limit int, option, format string, args ...any) {
	r.refuse(at, Error{
		Limit:  limit,
		Reason: fmt.Sprintf(format, args...) + fmt.Sprintf(" and the limit is %d", limit),
		Hint:   "make it smaller, or raise the host's limit Preflight." + option,
	})
}

func (r *reader) byte() byte {
	if r.pos >= r.end {
		r.malformed(r.pos, "it ends early")
		return 0
	}
	b := r.module[r.pos]
	r.pos++
	return b
}

// skip passes over n bytes.
func (r *reader) skip(n int) {
	if n > r.left() {
		r.malformed(r.pos, "it ends early: %d bytes are announced and %d are left", n, r.left())
		return
	}
	r.pos += n
}

// u32 reads an unsigned LEB128 number, as int so that sums do not overflow.
func (r *reader) u32() int {
	if r.pos < r.end && r.module[r.pos] < 0x80 {
		r.pos++
		return int(r.module[r.pos-1])
	}
	start, value := r.pos, uint64(0)
	for shift := 0; shift < 35; shift += 7 {
		b := r.byte()
		value |= uint64(b&0x7f) << shift
		if b < 0x80 {
			if value>>32 != 0 {
				break
			}
			return int(value)
		}
	}
	r.malformed(start, "a number has more than 32 bits")
	return 0
}

// signed reads a signed LEB128 number of so many bits.
func (r *reader) signed(bits int) int64 {
	start, value := r.pos, int64(0)
	for shift := 0; shift < bits; shift += 7 {
		b := r.byte()
		value |= int64(b&0x7f) << shift
		if b >= 0x80 {
			continue
		}
		if unused := bits - shift; unused < 7 { // the rest must repeat the sign
			if rest := int8(b<<1) >> unused; rest != 0 && rest != -1 {
				break
			}
		}
		if used := shift + 7; used < 64 {
			value = value << (64 - used) >> (64 - used)
		}
		return value
	}
	r.malformed(start, "a number has more than %d bits", bits)
	return 0
}

// count reads how many elements follow. There are as many as that at most, each
// of at least so many bytes.
func (r *reader) count(what string, least, limit int, option string) int {
	start := r.pos
	n := r.u32()
	if n > limit {
		r.over(start, limit, option, "there are %d %s", n, what)
		return 0
	}
	if n > r.left()/least {
		r.malformed(start, "%d %s are announced, and %d bytes are left", n, what, r.left())
		return 0
	}
	return n
}

// name reads a string. It shares memory with the module.
func (r *reader) name() []byte {
	start := r.pos
	n := r.u32()
	from := r.pos
	r.skip(n)
	if r.err != nil {
		return nil
	}
	name := r.module[from : from+n]
	if !utf8.Valid(name) {
		r.malformed(start, "a name is not valid UTF-8")
	}
	return name
}
