package flows

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"

	"github.com/zclconf/go-cty/cty"
)

// extract appends the JSON at a place as [encodeJSON] would write the value there
// after [decodeJSON]: without white space, keys sorted and the last of equal ones
// kept, texts normalised, numbers in the shortest form. It fails where the two
// would, and where there is no such place.
func (p *jsonParser) extract(out []byte, steps []jsonStep) ([]byte, error) {
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

func (p *jsonParser) rewrite(out []byte, depth int) ([]byte, error) {
	if depth > maxDepth {
		return nil, errTooDeep
	}
	switch c := p.peek(); {
	case c == '{':
		return p.rewriteObject(out, depth)
	case c == '[':
		return p.rewriteArray(out, depth)
	case c == '"':
		return p.rewriteText(out)
	case c == '-' || c >= '0' && c <= '9':
		return p.rewriteNumber(out)
	}
	start := p.pos
	err := p.skip(depth)
	return append(out, p.src[start:p.pos]...), err
}

func (p *jsonParser) rewriteText(out []byte) ([]byte, error) {
	if body, ok := p.ascii(); ok {
		return appendQuoted(out, body), nil
	}
	s, err := p.text()
	return appendText(out, cty.NormalizeString(s)), err
}

func appendQuoted(out, ascii []byte) []byte {
	return append(append(append(out, '"'), ascii...), '"')
}

func (p *jsonParser) rewriteNumber(out []byte) ([]byte, error) {
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
	return p.meter.appendNumber(out, v.AsBigFloat())
}

// decimal writes a number as appendNumber does, without computing it. The precision
// of numbers is that of 154 digits: one of fewer is the shortest that it is read as.
// It leaves alone what is at the border of how numbers are written.
func (p *jsonParser) decimal(out []byte) ([]byte, bool) {
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
	whole, fraction, _ := bytes.Cut(bytes.TrimPrefix(mantissa, []byte("-")), []byte("."))
	all := append(slices.Clone(whole), fraction...)
	significant := bytes.TrimLeft(all, "0")
	point := len(whole) + power - (len(all) - len(significant)) // the value is 0.significant × 10^point
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

func (p *jsonParser) rewriteArray(out []byte, depth int) ([]byte, error) {
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

// jsonMember is a member of an object that is being rewritten.
type jsonMember struct {
	key        []byte
	start, end int // where it stands in what was written
}

func (p *jsonParser) rewriteObject(out []byte, depth int) ([]byte, error) {
	begin := len(out)
	out = append(out, '{')
	var few [8]jsonMember
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
			out = appendText(out, string(key))
		}
		out, err = p.rewrite(append(out, ':'), depth+1)
		members = append(members, jsonMember{key, start, len(out)})
		return err
	})
	out = append(out, '}')
	if p.meter.charge((len(out) - begin) / 1024); p.meter.spent() {
		return nil, errTooMuch
	}
	if err == nil && !sorted {
		out = arrange(out, begin, members)
	}
	return out, err
}

// arrange sorts the members of the object that begins there and ends out.
func arrange(out []byte, begin int, members []jsonMember) []byte {
	written := slices.Clone(out[begin:])
	slices.SortStableFunc(members, func(a, b jsonMember) int { return bytes.Compare(a.key, b.key) })
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
