package ctyjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/zclconf/go-cty/cty"
)

// Step leads from a JSON value to one of its parts: to the member of that name or,
// unless Index is negative, to an element.
type Step struct {
	Name  string
	Index int
}

// ErrNoSuchPart is returned for steps that lead nowhere.
var ErrNoSuchPart = errors.New("there is no such member or item")

// First is the first byte that is no white space, 0 for none. It shows what kind of
// value the JSON is.
func First(src []byte) byte {
	p := parser{src: src}
	return p.peek()
}

// Enter finds the part that a step leads to, in a value that is nested as deeply as
// depth. Of an array it also gives the length, even if there is no such part.
func Enter(src []byte, s Step, depth int, m Meter) (part json.RawMessage, length int, err error) {
	p := parser{src: src, meter: m}
	at, err := p.enter(s, depth)
	if err != nil {
		return nil, p.items, err
	}
	p.pos = at
	err = p.skip(depth + 1)
	return src[at:p.pos], p.items, err
}

// ErrNoParts is returned for values that are neither objects nor arrays.
var ErrNoParts = errors.New("an object or an array is required")

// Each calls part for each member of an object, with its name, or for each element of
// an array, with a nil name. Nothing is decoded: the parts are as src contains them.
func Each(src []byte, m Meter, part func(name, value []byte) error) error {
	p := &parser{src: src, meter: m}
	value := func(name []byte) error {
		p.peek()
		start := p.pos
		if err := p.skip(1); err != nil {
			return err
		}
		return part(name, src[start:p.pos])
	}
	var err error
	switch p.peek() {
	case '[':
		err = p.sequence(']', func() error { return value(nil) })
	case '{':
		err = p.sequence('}', func() error {
			name, _, err := p.key()
			if err != nil {
				return err
			}
			return value(name)
		})
	default:
		return ErrNoParts
	}
	if err != nil {
		return err
	}
	return p.end()
}

// enter finds a part of the next value and skips the value: the JSON is checked to its
// end. As in [Decode], the last of several members of one name counts.
func (p *parser) enter(s Step, depth int) (at int, err error) {
	at = -1
	switch c := p.peek(); {
	case c == '{' && s.Index < 0:
		err = p.sequence('}', func() error {
			name, _, err := p.key()
			if err == nil && string(name) == s.Name {
				at = p.pos
			}
			if err == nil {
				err = p.skip(depth + 1)
			}
			return err
		})
	case c == '[' && s.Index >= 0:
		n := 0
		err = p.sequence(']', func() error {
			if n == s.Index {
				at = p.pos
			}
			n++
			return p.skip(depth + 1)
		})
		p.items = n
	}
	if err == nil && at < 0 {
		err = ErrNoSuchPart
	}
	return at, err
}

// skip passes over a value. It accepts what [parser.value] accepts.
func (p *parser) skip(depth int) error {
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
		return p.skipString()
	case c == '-' || c >= '0' && c <= '9':
		return p.skipNumber()
	case p.keyword("null"), p.keyword("true"), p.keyword("false"):
		return nil
	}
	return errNoValue
}

func (p *parser) skipString() error {
	quoted, plain, err := p.quoted()
	if err == nil && !plain && !json.Valid(quoted) {
		err = errEscape
	}
	return err
}

// key reads a member's name, in the form in which expressions know it, and the
// colon after it. An ascii name is the same in src.
func (p *parser) key() (name []byte, ascii bool, err error) {
	if p.peek() != '"' {
		return nil, false, errNoName
	}
	if name, ascii = p.ascii(); !ascii {
		var s string
		if s, err = p.string(); err != nil {
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

// ascii reads a string that has neither escapes nor letters beyond ASCII, and so is
// its own normal form. It leaves the position unchanged before any other.
func (p *parser) ascii() ([]byte, bool) {
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

// skipNumber passes over a number. It computes only numbers whose length or exponent
// could put them out of range.
func (p *parser) skipNumber() error {
	n := scanNumber(p.src[p.pos:])
	if n.length > 0 && n.length <= 100 && n.exponent <= 2 {
		p.pos += n.length
		return nil
	}
	_, err := p.number()
	return err
}

// numberForm describes how a number is written.
type numberForm struct {
	length   int // 0 when it is not a number
	exponent int // digits of the exponent
	normal   int // length of the prefix that appendNumber would write; 0 when that must be computed
}

// MaxDigits bounds the digits of a number. Reading one costs the square of them.
const MaxDigits = 1000

// ErrDigits is returned for numbers of more digits than [MaxDigits].
var ErrDigits = fmt.Errorf("a number has more than %d digits: keep it as a string", MaxDigits)

// NumberLength is the length of the number at the beginning of src, 0 for none.
func NumberLength(src []byte) int { return scanNumber(src).length }

// CheckNumber refuses a number literal of any syntax as [Decode] does.
func CheckNumber(literal []byte) error {
	_, exponent, _ := bytes.Cut(bytes.ToLower(literal), []byte("e"))
	if n, err := strconv.Atoi(string(exponent)); err != nil && len(exponent) > 0 || n > MaxExponent || n < -MaxExponent {
		return ErrNumberRange
	}
	return numberForm{length: len(literal)}.check()
}

// check refuses a number that costs too much to be read.
func (n numberForm) check() error {
	switch {
	case n.length > MaxDigits:
		return ErrDigits
	case n.exponent > maxExponentDigits:
		return ErrNumberRange
	}
	return nil
}

// maxExponentDigits is far beyond MaxExponent already.
const maxExponentDigits = 5

// cost is what reading the number costs beyond what each byte does.
func (n numberForm) cost() int {
	cost := n.length / 60
	if n.exponent > 0 {
		cost += 1 << (2 * min(n.exponent-1, 2))
	}
	return cost
}

// scanNumber describes the number at the beginning of src (RFC 8259, section 6).
func scanNumber(src []byte) numberForm {
	i := 0
	if src[i] == '-' {
		i++
	}
	integer := digits(src[i:])
	if integer == 0 || integer > 1 && src[i] == '0' {
		return numberForm{}
	}
	i += integer
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
		n.normal = normalDecimal(src[:i], integer, fraction)
	}
	return n
}

// normalDecimal is the length of a decimal's shortest form. A float64 distinguishes
// all decimals of 15 digits, and is written as the shortest that is nearest to it: as
// this one without trailing zeros.
func normalDecimal(src []byte, integer, fraction int) int {
	n := len(src)
	for ; fraction > 0 && src[n-1] == '0'; n-- {
		fraction--
	}
	if fraction == 0 && src[n-1] == '.' {
		n--
	}
	if string(src[:n]) == "-0" || fraction == 0 && integer > 18 || fraction > 0 && integer+fraction > 15 {
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
