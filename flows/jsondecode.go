package flows

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

// Reasons why JSON is not valid.
var (
	errTooDeep  = fmt.Errorf("nested more than %d deep", maxDepth)
	errNoValue  = errors.New("a value is expected")
	errNoName   = errors.New("a name in quotes is expected")
	errNoColon  = errors.New("a colon is expected")
	errNoComma  = errors.New("a comma or the closing bracket is expected")
	errNoEnd    = errors.New("something follows the value")
	errControl  = errors.New("a control character must be escaped")
	errOpenText = errors.New("the text has no end")
	errEscape   = errors.New("the text has a wrong escape")
	errNumber   = errors.New("not a number")
	errTooMuch  = errors.New("it is too much to be looked into: let a task do that")
)

// maxDepth bounds the nesting of JSON that expressions can look into.
const maxDepth = 1000

// decodeJSON converts JSON to the value that expressions see: objects, tuples,
// texts, exact numbers and untyped nulls.
func decodeJSON(src []byte) (cty.Value, error) { return newMeter().decode(src) }

// decode is [decodeJSON], charged to the meter.
func (m *meter) decode(src []byte) (cty.Value, error) {
	p := &jsonParser{src: src, meter: m}
	m.charge(len(src) / 16)
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

type jsonParser struct {
	src   []byte
	pos   int
	meter *meter // of who decodes
	items int    // of the list that was entered last
}

// peek skips white space and gives the next byte, 0 at the end.
func (p *jsonParser) peek() byte {
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
func (p *jsonParser) end() error {
	if p.peek() != 0 || p.pos < len(p.src) {
		return errNoEnd
	}
	return nil
}

// sequence reads an object or an array up to its closing bracket.
func (p *jsonParser) sequence(closing byte, item func() error) error {
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

func (p *jsonParser) value(depth int) (cty.Value, error) {
	if depth > maxDepth {
		return cty.NilVal, errTooDeep
	}
	switch c := p.peek(); {
	case c == '{':
		return p.object(depth)
	case c == '[':
		return p.array(depth)
	case c == '"':
		s, err := p.text()
		return cty.StringVal(s), err
	case c == '-' || c >= '0' && c <= '9':
		return p.number()
	case p.word("null"):
		return cty.NullVal(cty.DynamicPseudoType), nil
	case p.word("true"):
		return cty.True, nil
	case p.word("false"):
		return cty.False, nil
	}
	return cty.NilVal, errNoValue
}

func (p *jsonParser) word(w string) bool {
	if !strings.HasPrefix(string(p.src[p.pos:min(len(p.src), p.pos+len(w))]), w) {
		return false
	}
	p.pos += len(w)
	return true
}

func (p *jsonParser) object(depth int) (cty.Value, error) {
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

func (p *jsonParser) array(depth int) (cty.Value, error) {
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

// text reads a string. One without escapes, as most are, is taken as it is.
func (p *jsonParser) text() (string, error) {
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
func (p *jsonParser) quoted() (quoted []byte, plain bool, err error) {
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
	return nil, false, errOpenText
}

func (p *jsonParser) number() (cty.Value, error) {
	n := scanNumber(p.src[p.pos:])
	if n.length == 0 {
		return cty.NilVal, errNumber
	}
	if err := n.check(); err != nil {
		return cty.NilVal, err
	}
	literal := string(p.src[p.pos : p.pos+n.length])
	p.pos += n.length
	if p.meter.charge(n.cost()); p.meter.spent() {
		return cty.NilVal, errTooMuch
	}
	if whole, err := strconv.ParseInt(literal, 10, 64); err == nil && whole != 0 {
		return cty.NumberVal(new(big.Float).SetPrec(precision).SetInt64(whole)), nil
	}
	v, err := cty.ParseNumberVal(literal)
	if err != nil || outOfRange(v.AsBigFloat()) {
		return cty.NilVal, errNumberRange
	}
	return v, nil
}
