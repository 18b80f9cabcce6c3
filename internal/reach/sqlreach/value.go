package sqlreach

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/flowhost/flowhost/run/access"
)

// maxPlain is the largest integer that every reader of JSON numbers keeps.
const maxPlain = 1 << 53

// form is how the values of a column are written.
type form int

const (
	formPlain     form = iota // as the driver returns them; bytes are bytes
	formText                  // bytes are text
	formDate                  // a time is a date
	formInt                   // text is an integer that is too large for the driver
	formTimestamp             // bytes are "2006-01-02 15:04:05.999999", in UTC
)

// appendValue appends a value of a row in its wire form.
func appendValue(b []byte, v any, f form) []byte {
	switch v := v.(type) {
	case nil:
		return append(b, "null"...)
	case bool:
		return strconv.AppendBool(b, v)
	case int64:
		return appendInt(b, v)
	case uint64:
		if v <= math.MaxInt64 {
			return appendInt(b, int64(v))
		}
		return appendLarge(b, strconv.FormatUint(v, 10))
	case float32:
		return appendFloat(b, float64(v), 32)
	case float64:
		return appendFloat(b, v, 64)
	case time.Time:
		if f == formDate {
			return v.AppendFormat(append(b, '"'), `2006-01-02"`)
		}
		return append(v.UTC().AppendFormat(append(b, '"'), time.RFC3339Nano), '"')
	case string:
		if f == formInt {
			return appendLarge(b, v)
		}
		return appendText(b, v)
	case []byte:
		switch f {
		case formInt:
			return appendLarge(b, string(v))
		case formText, formDate:
			return appendText(b, string(v))
		case formTimestamp:
			return appendText(b, timestampText(string(v)))
		}
		return appendBytes(b, v)
	}
	return append(b, "null"...) // no driver returns another type
}

func appendInt(b []byte, v int64) []byte {
	if v <= maxPlain && v >= -maxPlain {
		return strconv.AppendInt(b, v, 10)
	}
	return appendLarge(b, strconv.FormatInt(v, 10))
}

func appendLarge(b []byte, digits string) []byte {
	b = append(b, `{"int":"`...)
	b = append(b, digits...)
	return append(b, `"}`...)
}

func appendFloat(b []byte, v float64, bits int) []byte {
	switch {
	case math.IsNaN(v):
		return append(b, `{"float":"NaN"}`...)
	case math.IsInf(v, 1):
		return append(b, `{"float":"Infinity"}`...)
	case math.IsInf(v, -1):
		return append(b, `{"float":"-Infinity"}`...)
	}
	start := len(b)
	b = strconv.AppendFloat(b, v, 'g', -1, bits)
	if !bytes.ContainsAny(b[start:], ".e") {
		b = append(b, ".0"...)
	}
	return b
}

func appendBytes(b, v []byte) []byte {
	b = append(b, `{"bytes":"`...)
	return append(base64.StdEncoding.AppendEncode(b, v), `"}`...)
}

func appendText(b []byte, v string) []byte {
	if !utf8.ValidString(v) {
		return appendBytes(b, []byte(v))
	}
	const hex = "0123456789abcdef"
	b = append(b, '"')
	for i := range len(v) {
		switch c := v[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c < 0x20:
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}

// timestampText turns MySQL's form into RFC 3339. 0000-00-00 has no such form.
func timestampText(text string) string {
	day, clock, ok := strings.Cut(text, " ")
	if !ok || strings.Contains(day, "-00") {
		return text
	}
	if clock = strings.TrimRight(clock, "0"); strings.Contains(text, ".") {
		clock = strings.TrimSuffix(clock, ".")
	} else {
		_, clock, _ = strings.Cut(text, " ")
	}
	return day + "T" + clock + "Z"
}

// maxArgs is how many arguments a statement has at most, PostgreSQL's bound.
const maxArgs = 65535

// decodeArgs reads arguments.
func decodeArgs(raw []json.RawMessage, timeForm func(time.Time) any) ([]any, *access.Fault) {
	if len(raw) > maxArgs {
		return nil, invalid("the statement has %d arguments, and %d are the most: insert fewer rows at once", len(raw), maxArgs)
	}
	args := make([]any, len(raw))
	for i, r := range raw {
		v, ok := decodeArg(r)
		if !ok {
			return nil, invalid(`argument %d has no form of a value: pass null, a boolean, a number, a text, or an object with one of "int", "float", "bytes", "time" and "decimal"`, i+1)
		}
		if t, isTime := v.(time.Time); isTime {
			v = timeForm(t)
		}
		args[i] = v
	}
	return args, nil
}

func decodeArg(raw json.RawMessage) (any, bool) {
	if len(raw) == 0 {
		return nil, false
	}
	switch raw[0] {
	case 'n':
		return nil, string(raw) == "null"
	case 't', 'f':
		v, err := strconv.ParseBool(string(raw))
		return v, err == nil
	case '"':
		var v string
		err := json.Unmarshal(raw, &v)
		return v, err == nil
	case '{':
		return decodeTagged(raw)
	case '[':
		return nil, false
	}
	if bytes.ContainsAny(raw, ".eE") {
		v, err := strconv.ParseFloat(string(raw), 64)
		return v, err == nil
	}
	v, err := strconv.ParseInt(string(raw), 10, 64)
	return v, err == nil
}

// decodeTagged reads {"int": …} and the like: an object with one member, a text.
func decodeTagged(raw json.RawMessage) (any, bool) {
	var object map[string]*string
	if err := json.Unmarshal(raw, &object); err != nil || len(object) != 1 {
		return nil, false
	}
	for tag, text := range object {
		if text != nil {
			return decodeTag(tag, *text)
		}
	}
	return nil, false
}

func decodeTag(tag, text string) (any, bool) {
	switch tag {
	case "int":
		if v, err := strconv.ParseInt(text, 10, 64); err == nil {
			return v, true
		}
		_, err := strconv.ParseUint(text, 10, 64)
		return text, err == nil // drivers take no uint64 above int64's
	case "float":
		v, err := strconv.ParseFloat(text, 64)
		return v, err == nil
	case "bytes":
		v, err := base64.StdEncoding.DecodeString(text)
		return v, err == nil
	case "time":
		v, err := time.Parse(time.RFC3339Nano, text)
		return v, err == nil
	case "decimal":
		return text, isDecimal(text)
	}
	return nil, false
}

// isDecimal reports whether a text is a number in decimal notation, with an exponent or
// without. Hexadecimal, underscores and infinities are none.
func isDecimal(text string) bool {
	if strings.ContainsAny(text, "xXpP_") {
		return false
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		// Out of the range of a float is in the range of a decimal.
		return strings.Contains(err.Error(), "out of range")
	}
	return !math.IsNaN(v) && !math.IsInf(v, 0)
}
