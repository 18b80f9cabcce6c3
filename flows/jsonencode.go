package flows

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/zclconf/go-cty/cty"
)

var errNotObject = errors.New("an object is required")

// encodeJSON gives a value its compact JSON form: the keys of objects sorted,
// sets in cty's order, numbers in full, nothing escaped that need not be.
func encodeJSON(v cty.Value) (json.RawMessage, error) { return newMeter().encode(v) }

// encode is [encodeJSON], charged to the meter.
func (m *meter) encode(v cty.Value) (json.RawMessage, error) {
	if v.ContainsMarked() {
		v, _ = v.UnmarkDeep()
	}
	return m.appendJSON(nil, v)
}

func (m *meter) appendJSON(out []byte, v cty.Value) ([]byte, error) {
	t := v.Type()
	switch {
	case !v.IsKnown():
		return nil, errors.New("a part of it is not known")
	case v.IsNull():
		return append(out, "null"...), nil
	case t == cty.String:
		return appendText(out, v.AsString()), nil
	case t == cty.Number:
		return m.appendNumber(out, v.AsBigFloat())
	case t == cty.Bool && v.True():
		return append(out, "true"...), nil
	case t == cty.Bool:
		return append(out, "false"...), nil
	case t.IsObjectType() || t.IsMapType():
		return m.appendObject(out, v)
	case t.IsTupleType() || t.IsListType() || t.IsSetType():
		return m.appendArray(out, v)
	}
	return nil, fmt.Errorf("a %s is not data", t.FriendlyName())
}

func (m *meter) appendObject(out []byte, v cty.Value) ([]byte, error) {
	attrs := v.AsValueMap()
	names := make([]string, 0, len(attrs))
	for name := range attrs {
		names = append(names, name)
	}
	slices.Sort(names)
	out = append(out, '{')
	for i, name := range names {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(appendText(out, name), ':')
		var err error
		if out, err = m.appendJSON(out, attrs[name]); err != nil {
			return nil, err
		}
	}
	return append(out, '}'), nil
}

func (m *meter) appendArray(out []byte, v cty.Value) ([]byte, error) {
	out = append(out, '[')
	first := true
	for it := v.ElementIterator(); it.Next(); {
		if !first {
			out = append(out, ',')
		}
		first = false
		_, item := it.Element()
		var err error
		if out, err = m.appendJSON(out, item); err != nil {
			return nil, err
		}
	}
	return append(out, ']'), nil
}

const (
	// maxPlainExponent is the power of two up to which a number is written
	// without an exponent: cty's numbers have 512 bits.
	maxPlainExponent = 512

	// maxExponent is the largest power of two of a number, about 10^616: the
	// square of the range of a float64. The cost of writing a number in decimal
	// grows with its exponent.
	maxExponent = 1 << 11
)

var errNumberRange = errors.New("a number is out of range")

func outOfRange(f *big.Float) bool {
	exponent := f.MantExp(nil)
	return f.IsInf() || exponent > maxExponent || exponent < -maxExponent
}

// appendNumber writes the shortest decimal that reads back as the same number. The
// meter is charged where that is not one of a float64.
func (m *meter) appendNumber(out []byte, f *big.Float) ([]byte, error) {
	if outOfRange(f) {
		return nil, errNumberRange
	}
	if n, accuracy := f.Int64(); accuracy == big.Exact {
		return strconv.AppendInt(out, n, 10), nil
	}
	if short, ok := shortDecimal(out, f); ok {
		return short, nil
	}
	if m.charge(digitsCost(f)); m.spent() {
		return nil, errCost
	}
	if exponent := f.MantExp(nil); exponent > maxPlainExponent || exponent < -maxPlainExponent {
		return f.Append(out, 'e', -1), nil
	}
	return f.Append(out, 'f', -1), nil
}

// shortDecimal writes a number as cty does, without an exponent, if it is a whole
// number of 64 bits or has the decimals of a float64: that is much cheaper, and most
// numbers are like that.
func shortDecimal(out []byte, f *big.Float) ([]byte, bool) {
	if n, accuracy := f.Int64(); accuracy == big.Exact {
		return strconv.AppendInt(out, n, 10), !(n == 0 && f.Signbit())
	}
	if exponent := f.MantExp(nil); exponent > maxPlainExponent || exponent < -maxPlainExponent {
		return out, false
	}
	short, _ := f.Float64()
	written := strconv.AppendFloat(out, short, 'f', -1, 64)
	back, err := cty.ParseNumberVal(string(written[len(out):]))
	return written, err == nil && back.AsBigFloat().Cmp(f) == 0
}

const hexDigits = "0123456789abcdef"

// appendText quotes a text, escaping only what JSON requires (RFC 8259,
// section 7).
func appendText(out []byte, s string) []byte {
	out = append(out, '"')
	start := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' {
			continue
		}
		out = append(out, s[start:i]...)
		start = i + 1
		switch c {
		case '"', '\\':
			out = append(out, '\\', c)
		case '\n':
			out = append(out, '\\', 'n')
		case '\r':
			out = append(out, '\\', 'r')
		case '\t':
			out = append(out, '\\', 't')
		default:
			out = append(out, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	rest := s[start:]
	if !utf8.ValidString(rest) {
		rest = string([]rune(rest))
	}
	return append(append(out, rest...), '"')
}
