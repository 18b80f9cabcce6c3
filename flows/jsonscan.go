package flows

import (
	"encoding/json"
	"errors"

	"github.com/zclconf/go-cty/cty"
)

// jsonStep leads from a JSON value into it: to the member of that name, or, when
// index is not negative, to an item.
type jsonStep struct {
	name  string
	index int
}

var errNoSuchPlace = errors.New("there is no such member or item")

// enter finds a member or an item of the value that comes next, and skips all of
// it: the JSON is checked to the end of the value. As in [decodeJSON], the last of
// several members of one name counts.
func (p *jsonParser) enter(s jsonStep, depth int) (at int, err error) {
	at = -1
	switch c := p.peek(); {
	case c == '{' && s.index < 0:
		err = p.sequence('}', func() error {
			name, _, err := p.key()
			if err == nil && string(name) == s.name {
				at = p.pos
			}
			if err == nil {
				err = p.skip(depth + 1)
			}
			return err
		})
	case c == '[' && s.index >= 0:
		n := 0
		err = p.sequence(']', func() error {
			if n == s.index {
				at = p.pos
			}
			n++
			return p.skip(depth + 1)
		})
		p.items = n
	}
	if err == nil && at < 0 {
		err = errNoSuchPlace
	}
	return at, err
}

// skip passes over a value and accepts what [jsonParser.value] accepts.
func (p *jsonParser) skip(depth int) error {
	if depth > maxDepth {
		return errTooDeep
	}
	switch c := p.peek(); {
	case c == '{':
		return p.sequence('}', func() error {
			_, _, err := p.key()
			if err == nil {
				err = p.skip(depth + 1)
			}
			return err
		})
	case c == '[':
		return p.sequence(']', func() error { return p.skip(depth + 1) })
	case c == '"':
		return p.skipText()
	case c == '-' || c >= '0' && c <= '9':
		return p.skipNumber()
	case p.word("null"), p.word("true"), p.word("false"):
		return nil
	}
	return errNoValue
}

func (p *jsonParser) skipText() error {
	quoted, plain, err := p.quoted()
	if err == nil && !plain && !json.Valid(quoted) {
		err = errEscape
	}
	return err
}

// key reads a member's name, in the form in which expressions know it, and the
// colon after it. It is ascii when it stands in the JSON as it is.
func (p *jsonParser) key() (name []byte, ascii bool, err error) {
	if p.peek() != '"' {
		return nil, false, errNoName
	}
	if name, ascii = p.ascii(); !ascii {
		var s string
		if s, err = p.text(); err != nil {
			return nil, false, err
		}
		name = []byte(cty.NormalizeString(s))
	}
	if p.peek() != ':' {
		return nil, false, errNoColon
	}
	p.pos++
	return name, ascii, nil
}

// ascii reads a text that has neither escapes nor letters beyond ASCII, and so is
// its own normal form. Any other it leaves alone.
func (p *jsonParser) ascii() ([]byte, bool) {
	for i, c := range p.src[p.pos+1:] {
		switch {
		case c == '"':
			body := p.src[p.pos+1 : p.pos+1+i]
			p.pos += i + 2
			return body, true
		case c < 0x20 || c == '\\' || c >= 0x80:
			return nil, false
		}
	}
	return nil, false
}

// skipNumber passes over a number. Those that cannot be out of range by their
// length and their exponent need not be computed.
func (p *jsonParser) skipNumber() error {
	n := scanNumber(p.src[p.pos:])
	if n.length > 0 && n.length <= 100 && n.exponent <= 2 {
		p.pos += n.length
		return nil
	}
	_, err := p.number()
	return err
}

// numberForm says how a number is written.
type numberForm struct {
	length   int // 0 when it is not a number
	exponent int // digits of the exponent
	normal   int // bytes that are, by themselves, what appendNumber writes; 0 when that must be computed
}

// check refuses a number that costs too much to be read.
func (n numberForm) check() error {
	switch {
	case n.length > maxDigits:
		return errDigits
	case n.exponent > maxExponentDigits:
		return errNumberRange
	}
	return nil
}

// maxExponentDigits is far beyond maxExponent already.
const maxExponentDigits = 5

// cost is what reading the number costs beyond what each byte does.
func (n numberForm) cost() int {
	cost := n.length / 60
	if n.exponent > 0 {
		cost += 1 << (2 * min(n.exponent-1, 2))
	}
	return cost
}

// scanNumber looks at the number at the beginning (RFC 8259, section 6).
func scanNumber(src []byte) numberForm {
	i := 0
	if src[i] == '-' {
		i++
	}
	whole := digits(src[i:])
	if whole == 0 || whole > 1 && src[i] == '0' {
		return numberForm{}
	}
	i += whole
	fraction := 0
	if i < len(src) && src[i] == '.' {
		if fraction = digits(src[i+1:]); fraction == 0 {
			return numberForm{}
		}
		i += 1 + fraction
	}
	exponent := 0
	if i < len(src) && (src[i] == 'e' || src[i] == 'E') {
		i++
		if i < len(src) && (src[i] == '+' || src[i] == '-') {
			i++
		}
		if exponent = digits(src[i:]); exponent == 0 {
			return numberForm{}
		}
		i += exponent
	}
	n := numberForm{length: i, exponent: exponent}
	if exponent == 0 {
		n.normal = normalDecimal(src[:i], whole, fraction)
	}
	return n
}

// normalDecimal is how much of a decimal is its shortest form. A float64 tells
// all decimals of 15 digits apart, and is written as the shortest that is nearest
// to it: as this one without the zeros at its end.
func normalDecimal(src []byte, whole, fraction int) int {
	n := len(src)
	for ; fraction > 0 && src[n-1] == '0'; n-- {
		fraction--
	}
	if fraction == 0 && src[n-1] == '.' {
		n--
	}
	if string(src[:n]) == "-0" || fraction == 0 && whole > 18 || fraction > 0 && whole+fraction > 15 {
		return 0
	}
	return n
}

func digits(src []byte) int {
	for i, c := range src {
		if c < '0' || c > '9' {
			return i
		}
	}
	return len(src)
}
