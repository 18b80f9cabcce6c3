package ctyjson

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/zclconf/go-cty/cty"
)

// ErrTooMuch is returned for JSON that the meter does not pay for.
var ErrTooMuch = errors.New("it is too much to be looked into: let a task do that")

// Reasons why JSON is not valid.
var (
	errTooDeep    = fmt.Errorf("nested more than %d deep", maxDepth)
	errNoValue    = errors.New("a value is expected")
	errNoName     = errors.New("a name in quotes is expected")
	errNoColon    = errors.New("a colon is expected")
	errNoComma    = errors.New("a comma or the closing bracket is expected")
	errNoEnd      = errors.New("something follows the value")
	errControl    = errors.New("a control character must be escaped")
	errOpenString = errors.New("the string has no end")
	errEscape     = errors.New("the string has an invalid escape")
	errNumber     = errors.New("not a number")
)

// maxDepth bounds the nesting of JSON that expressions can look into.
const maxDepth = 1000

// Decode converts JSON to the value that expressions see: objects, tuples,
// strings, exact numbers and untyped nulls.
func Decode(src []byte, m Meter) (cty.Value, error) {
	p := &parser{src: src, meter: m}
	m.Charge(len(src) / 16) // the numbers in it stop the decoder when nothing is left
	v, err := p.value(0)
	if err == nil {
		err = p.end()
	}
	if err != nil {
		return cty.NilVal, fmt.Errorf("not valid JSON at byte %d: %w", p.pos, err)
	}
	return v, nil
}

// precision is that of all numbers in expressions, in bits.
const precision = 512

type parser struct {
	src   []byte
	pos   int
	meter Meter
	items int // of the array that was entered last
}

// peek skips white space and gives the next byte, 0 at the end.
func (p *parser) peek() byte {
	for ; p.pos < len(p.src); p.pos++ {
		switch c := p.src[p.pos]; c {
		case ' ', '\t', '\r', '\n':
		default:
			return c
		}
	}
	return 0
}

// end checks that nothing but white space is left.
func (p *parser) end() error {
	if p.peek() != 0 || p.pos < len(p.src) {
		return errNoEnd
	}
	return nil
}

// sequence reads an object or an array up to its closing bracket. It calls item at
// the beginning of each element.
func (p *parser) sequence(closing byte, item func() error) error {
	p.pos++
	if p.peek() == closing {
		p.pos++
		return nil
	}
	for {
		if err := item(); err != nil {
			return err
		}
		switch p.peek() {
		case ',':
			p.pos++
		case closing:
			p.pos++
			return nil
		default:
			return errNoComma
		}
	}
}

func (p *parser) value(depth int) (cty.Value, error) {
	if depth > maxDepth {
		return cty.NilVal, errTooDeep
	}
	switch c := p.peek(); {
	case c == '{':
		return p.object(depth)
	case c == '[':
		return p.array(depth)
	case c == '"':
		s, err := p.string()
		return cty.StringVal(s), err
	case c == '-' || c >= '0' && c <= '9':
		return p.number()
	case p.keyword("null"):
		return cty.NullVal(cty.DynamicPseudoType), nil
	case p.keyword("true"):
		return cty.True, nil
	case p.keyword("false"):
		return cty.False, nil
	}
	return cty.NilVal, errNoValue
}

func (p *parser) keyword(w string) bool {
	if !strings.HasPrefix(string(p.src[p.pos:min(len(p.src), p.pos+len(w))]), w) {
		return false
	}
	p.pos += len(w)
	return true
}

func (p *parser) object(depth int) (cty.Value, error) {
	attrs := map[string]cty.Value{}
	err := p.sequence('}', func() error {
		name, _, err := p.key()
		if err == nil {
			attrs[string(name)], err = p.value(depth + 1)
		}
		return err
	})
	if err != nil {
		return cty.NilVal, err
	}
	return cty.ObjectVal(attrs), nil
}

func (p *parser) array(depth int) (cty.Value, error) {
	var items []cty.Value
	err := p.sequence(']', func() error {
		item, err := p.value(depth + 1)
		items = append(items, item)
		return err
	})
	if err != nil {
		return cty.NilVal, err
	}
	return cty.TupleVal(items), nil
}

// string reads a string. One without escapes, as most are, is used as it is.
func (p *parser) string() (string, error) {
	quoted, plain, err := p.quoted()
	if err != nil {
		return "", err
	}
	if body := quoted[1 : len(quoted)-1]; plain && utf8.Valid(body) {
		return string(body), nil
	}
	var s string
	if err := json.Unmarshal(quoted, &s); err != nil {
		return "", errEscape
	}
	return s, nil
}

// quoted finds the end of a string. It is plain without escapes.
func (p *parser) quoted() (quoted []byte, plain bool, err error) {
	start := p.pos
	plain = true
	for p.pos++; p.pos < len(p.src); p.pos++ {
		switch c := p.src[p.pos]; {
		case c == '\\':
			plain = false
			p.pos++
		case c == '"':
			p.pos++
			return p.src[start:p.pos], plain, nil
		case c < 0x20:
			return nil, false, errControl
		}
	}
	return nil, false, errOpenString
}

func (p *parser) number() (cty.Value, error) {
	n := scanNumber(p.src[p.pos:])
	if n.length == 0 {
		return cty.NilVal, errNumber
	}
	if err := n.check(); err != nil {
		return cty.NilVal, err
	}
	literal := string(p.src[p.pos : p.pos+n.length])
	p.pos += n.length
	if p.meter.Charge(n.cost()) != nil {
		return cty.NilVal, ErrTooMuch
	}
	if n, err := strconv.ParseInt(literal, 10, 64); err == nil && n != 0 {
		return cty.NumberVal(new(big.Float).SetPrec(precision).SetInt64(n)), nil
	}
	v, err := cty.ParseNumberVal(literal)
	if err != nil || OutOfRange(v.AsBigFloat()) {
		return cty.NilVal, ErrNumberRange
	}
	return v, nil
}
