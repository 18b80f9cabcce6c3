package ctyjson

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"

	"github.com/zclconf/go-cty/cty"
)

// Extract appends the part of src that the steps lead to, as [Encode] would write it
// after [Decode]: without white space, keys sorted and the last of equal ones
// kept, strings normalized, numbers in the shortest form. It fails where the two
// would, and with [ErrNoSuchPart].
func Extract(out, src []byte, steps []Step, m Meter) ([]byte, error) {
	p := &parser{src: src, meter: m}
	for depth, step := range steps {
		at, err := p.enter(step, depth)
		if err == nil && depth == 0 {
			err = p.end()
		}
		if err != nil {
			return nil, err
		}
		p.pos = at
	}
	out, err := p.rewrite(out, len(steps))
	if err == nil && len(steps) == 0 {
		err = p.end()
	}
	return out, err
}

func (p *parser) rewrite(out []byte, depth int) ([]byte, error) {
	if depth > maxDepth {
		return nil, errTooDeep
	}
	switch c := p.peek(); {
	case c == '{':
		return p.rewriteObject(out, depth)
	case c == '[':
		return p.rewriteArray(out, depth)
	case c == '"':
		return p.rewriteString(out)
	case c == '-' || c >= '0' && c <= '9':
		return p.rewriteNumber(out)
	}
	start := p.pos
	err := p.skip(depth)
	return append(out, p.src[start:p.pos]...), err
}

func (p *parser) rewriteString(out []byte) ([]byte, error) {
	if body, ok := p.ascii(); ok {
		return appendQuoted(out, body), nil
	}
	s, err := p.string()
	return AppendString(out, cty.NormalizeString(s)), err
}

func appendQuoted(out, ascii []byte) []byte {
	return append(append(append(out, '"'), ascii...), '"')
}

func (p *parser) rewriteNumber(out []byte) ([]byte, error) {
	if n := scanNumber(p.src[p.pos:]); n.normal > 0 {
		out = append(out, p.src[p.pos:p.pos+n.normal]...)
		p.pos += n.length
		return out, nil
	}
	if out, ok := p.decimal(out); ok {
		return out, nil
	}
	v, err := p.number()
	if err != nil {
		return nil, err
	}
	return appendNumber(out, v.AsBigFloat(), p.meter)
}

// decimal writes a number as appendNumber does, without computing it. Numbers have a
// precision of 154 digits: a literal of fewer is the shortest form of its value. It
// refuses numbers near the border between the forms with and without an exponent.
func (p *parser) decimal(out []byte) ([]byte, bool) {
	n := scanNumber(p.src[p.pos:])
	if n.length == 0 || n.length > 140 || n.exponent > 4 {
		return out, false
	}
	literal := p.src[p.pos : p.pos+n.length]
	mantissa, power := literal, 0
	if i := bytes.IndexAny(literal, "eE"); i >= 0 {
		mantissa = literal[:i]
		power, _ = strconv.Atoi(string(literal[i+1:]))
	}
	negative := mantissa[0] == '-'
	integer, fraction, _ := bytes.Cut(bytes.TrimPrefix(mantissa, []byte("-")), []byte("."))
	all := append(slices.Clone(integer), fraction...)
	significant := bytes.TrimLeft(all, "0")
	point := len(integer) + power - (len(all) - len(significant)) // the value is 0.significant × 10^point
	significant = bytes.TrimRight(significant, "0")
	if len(significant) == 0 || point > 150 && point < 160 || point < -150 && point > -160 || point > 610 || point < -610 {
		return out, false
	}
	p.pos += n.length
	if negative {
		out = append(out, '-')
	}
	return appendDecimal(out, significant, point), true
}

// appendDecimal writes 0.digits × 10^point.
func appendDecimal(out, digits []byte, point int) []byte {
	switch n := len(digits); {
	case point > 150 || point < -150:
		out = append(out, digits[0])
		if n > 1 {
			out = append(append(out, '.'), digits[1:]...)
		}
		return fmt.Appendf(out, "e%+03d", point-1)
	case point <= 0:
		out = append(out, "0."...)
		return append(append(out, bytes.Repeat([]byte{'0'}, -point)...), digits...)
	case point >= n:
		return append(append(out, digits...), bytes.Repeat([]byte{'0'}, point-n)...)
	}
	return append(append(append(out, digits[:point]...), '.'), digits[point:]...)
}

func (p *parser) rewriteArray(out []byte, depth int) ([]byte, error) {
	out = append(out, '[')
	first := true
	err := p.sequence(']', func() (err error) {
		if !first {
			out = append(out, ',')
		}
		first = false
		out, err = p.rewrite(out, depth+1)
		return err
	})
	return append(out, ']'), err
}

// member is a member of an object that is being rewritten.
type member struct {
	key        []byte
	start, end int // its place in the output
}

func (p *parser) rewriteObject(out []byte, depth int) ([]byte, error) {
	begin := len(out)
	out = append(out, '{')
	var few [8]member
	members, sorted := few[:0], true
	err := p.sequence('}', func() error {
		key, ascii, err := p.key()
		if err != nil {
			return err
		}
		if n := len(members); n > 0 {
			out = append(out, ',')
			sorted = sorted && bytes.Compare(members[n-1].key, key) < 0
		}
		start := len(out)
		if ascii {
			out = appendQuoted(out, key)
		} else {
			out = AppendString(out, string(key))
		}
		out, err = p.rewrite(append(out, ':'), depth+1)
		members = append(members, member{key, start, len(out)})
		return err
	})
	out = append(out, '}')
	if p.meter.Charge((len(out)-begin)/1024) != nil {
		return nil, ErrTooMuch
	}
	if err == nil && !sorted {
		out = arrange(out, begin, members)
	}
	return out, err
}

// arrange sorts the members of the object that begins there and ends out.
func arrange(out []byte, begin int, members []member) []byte {
	written := slices.Clone(out[begin:])
	slices.SortStableFunc(members, func(a, b member) int { return bytes.Compare(a.key, b.key) })
	out = append(out[:begin], '{')
	for i, m := range members {
		if i+1 < len(members) && bytes.Equal(m.key, members[i+1].key) {
			continue // the last one counts
		}
		if len(out) > begin+1 {
			out = append(out, ',')
		}
		out = append(out, written[m.start-begin:m.end-begin]...)
	}
	return append(out, '}')
}
