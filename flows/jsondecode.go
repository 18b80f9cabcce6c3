package flows

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/zclconf/go-cty/cty"
)

// maxDepth bounds the nesting of JSON that expressions can look into.
const maxDepth = 1000

// decodeJSON converts JSON to the value that expressions see: objects, tuples,
// texts, exact numbers and untyped nulls.
func decodeJSON(src []byte) (cty.Value, error) {
	p := &jsonParser{src: src}
	v, err := p.value(0)
	if err == nil && p.peek() != 0 {
		err = errors.New("something follows the value")
	}
	if err == nil && p.pos < len(p.src) {
		err = errors.New("something follows the value")
	}
	if err != nil {
		return cty.NilVal, fmt.Errorf("not valid JSON at byte %d: %w", p.pos, err)
	}
	return v, nil
}

type jsonParser struct {
	src []byte
	pos int
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

func (p *jsonParser) value(depth int) (cty.Value, error) {
	if depth > maxDepth {
		return cty.NilVal, fmt.Errorf("nested more than %d deep", maxDepth)
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
	return cty.NilVal, errors.New("a value is expected")
}

func (p *jsonParser) word(w string) bool {
	if !strings.HasPrefix(string(p.src[p.pos:min(len(p.src), p.pos+len(w))]), w) {
		return false
	}
	p.pos += len(w)
	return true
}

func (p *jsonParser) object(depth int) (cty.Value, error) {
	p.pos++
	attrs := map[string]cty.Value{}
	if p.peek() == '}' {
		p.pos++
		return cty.EmptyObjectVal, nil
	}
	for {
		if p.peek() != '"' {
			return cty.NilVal, errors.New("a name in quotes is expected")
		}
		name, err := p.text()
		if err != nil {
			return cty.NilVal, err
		}
		if p.peek() != ':' {
			return cty.NilVal, errors.New("a colon is expected")
		}
		p.pos++
		if attrs[cty.NormalizeString(name)], err = p.value(depth + 1); err != nil {
			return cty.NilVal, err
		}
		switch p.peek() {
		case ',':
			p.pos++
		case '}':
			p.pos++
			return cty.ObjectVal(attrs), nil
		default:
			return cty.NilVal, errors.New("a comma or } is expected")
		}
	}
}

func (p *jsonParser) array(depth int) (cty.Value, error) {
	p.pos++
	if p.peek() == ']' {
		p.pos++
		return cty.EmptyTupleVal, nil
	}
	var items []cty.Value
	for {
		item, err := p.value(depth + 1)
		if err != nil {
			return cty.NilVal, err
		}
		items = append(items, item)
		switch p.peek() {
		case ',':
			p.pos++
		case ']':
			p.pos++
			return cty.TupleVal(items), nil
		default:
			return cty.NilVal, errors.New("a comma or ] is expected")
		}
	}
}

// text reads a string. One without escapes, as most are, is taken as it is.
func (p *jsonParser) text() (string, error) {
	start, plain := p.pos, true
	for p.pos++; p.pos < len(p.src); p.pos++ {
		switch c := p.src[p.pos]; {
		case c == '\\':
			plain = false
			p.pos++
		case c == '"':
			p.pos++
			return p.unquote(p.src[start:p.pos], plain)
		case c < 0x20:
			return "", errors.New("a control character must be escaped")
		}
	}
	return "", errors.New("the text has no end")
}

func (p *jsonParser) unquote(quoted []byte, plain bool) (string, error) {
	if body := quoted[1 : len(quoted)-1]; plain && utf8.Valid(body) {
		return string(body), nil
	}
	var s string
	if err := json.Unmarshal(quoted, &s); err != nil {
		return "", errors.New("the text has a wrong escape")
	}
	return s, nil
}

func (p *jsonParser) number() (cty.Value, error) {
	start := p.pos
	for p.pos < len(p.src) && strings.IndexByte("+-.0123456789Ee", p.src[p.pos]) >= 0 {
		p.pos++
	}
	literal := p.src[start:p.pos]
	if !json.Valid(literal) {
		return cty.NilVal, errors.New("not a number")
	}
	v, err := cty.ParseNumberVal(string(literal))
	if err != nil || outOfRange(v.AsBigFloat()) {
		return cty.NilVal, errNumberRange
	}
	return v, nil
}
