package ctyjson

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

// Encode gives a value its compact JSON form: the keys of objects sorted,
// sets in cty's order, numbers in full, nothing escaped that need not be.
func Encode(v cty.Value, m Meter) (json.RawMessage, error) { return Append(nil, v, m) }

// Append is [Encode] for callers that have the beginning of the JSON.
func Append(out []byte, v cty.Value, m Meter) ([]byte, error) {
	if v.ContainsMarked() {
		v, _ = v.UnmarkDeep()
	}
	return appendValue(out, v, m)
}

func appendValue(out []byte, v cty.Value, m Meter) ([]byte, error) {
	t := v.Type()
	switch {
	case !v.IsKnown():
		return nil, errors.New("a part of it is not known")
	case v.IsNull():
		return append(out, "null"...), nil
	case t == cty.String:
		return AppendString(out, v.AsString()), nil
	case t == cty.Number:
		return appendNumber(out, v.AsBigFloat(), m)
	case t == cty.Bool && v.True():
		return append(out, "true"...), nil
	case t == cty.Bool:
		return append(out, "false"...), nil
	case t.IsObjectType() || t.IsMapType():
		return appendObject(out, v, m)
	case t.IsTupleType() || t.IsListType() || t.IsSetType():
		return appendArray(out, v, m)
	}
	return nil, fmt.Errorf("a %s is not data", t.FriendlyName())
}

func appendObject(out []byte, v cty.Value, m Meter) ([]byte, error) {
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
		out = append(AppendString(out, name), ':')
		var err error
		if out, err = appendValue(out, attrs[name], m); err != nil {
			return nil, err
		}
	}
	return append(out, '}'), nil
}

func appendArray(out []byte, v cty.Value, m Meter) ([]byte, error) {
	out = append(out, '[')
	first := true
	for it := v.ElementIterator(); it.Next(); {
		if !first {
			out = append(out, ',')
		}
		first = false
		_, item := it.Element()
		var err error
		if out, err = appendValue(out, item, m); err != nil {
			return nil, err
		}
	}
	return append(out, ']'), nil
}

const (
	// maxPlainExponent is the power of two up to which a number is written
	// without an exponent: cty's numbers have 512 bits.
	maxPlainExponent = 512

	// MaxExponent bounds the power of two of a number, about 10^616: the
	// square of the range of a float64. The cost of writing a number in decimal
	// grows with its exponent.
	MaxExponent = 1 << 11
)

// ErrNumberRange is returned for a number whose exponent is beyond [MaxExponent].
var ErrNumberRange = errors.New("a number is out of range")

// OutOfRange reports whether a number is beyond [MaxExponent].
func OutOfRange(f *big.Float) bool {
	exponent := f.MantExp(nil)
	return f.IsInf() || exponent > MaxExponent || exponent < -MaxExponent
}

// appendNumber writes the shortest decimal that reads back as the same number. It
// charges the meter for numbers that are no float64.
func appendNumber(out []byte, f *big.Float, m Meter) ([]byte, error) {
	if OutOfRange(f) {
		return nil, ErrNumberRange
	}
	if n, accuracy := f.Int64(); accuracy == big.Exact {
		return strconv.AppendInt(out, n, 10), nil
	}
	if short, ok := ShortDecimal(out, f); ok {
		return short, nil
	}
	if err := m.Charge(DigitsCost(f)); err != nil {
		return nil, err
	}
	if exponent := f.MantExp(nil); exponent > maxPlainExponent || exponent < -maxPlainExponent {
		return f.Append(out, 'e', -1), nil
	}
	return f.Append(out, 'f', -1), nil
}

// DigitsCost is what writing or comparing a number costs cty: it grows with the square
// of the digits after the point. math/big writes all numbers as if all bits of their
// precision counted.
func DigitsCost(n *big.Float) int {
	if exponent := n.MantExp(nil); exponent < 0 {
		return 90 + exponent*exponent/8000
	}
	return 40
}

// ShortDecimal appends a number as cty writes it, without an exponent, if it is an
// integer of 64 bits or has the decimals of a float64: that is much cheaper, and most
// numbers are like that. It reports whether it did.
func ShortDecimal(out []byte, f *big.Float) ([]byte, bool) {
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

// AppendString appends a string in quotes. It escapes only what JSON requires
// (RFC 8259, section 7).
func AppendString(out []byte, s string) []byte {
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
