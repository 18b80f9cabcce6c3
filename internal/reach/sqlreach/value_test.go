package sqlreach_test

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/flowhost/flowhost/internal/reach/sqlreach"
)

func TestArguments(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]any{
		`null`: nil, `true`: true, `false`: false, `12`: int64(12), `-9223372036854775808`: int64(math.MinInt64), `1.0`: 1.0, `1e3`: 1000.0, `"x"`: "x", `"\u00e9"`: "é",
		`{"int":"9223372036854775807"}`: int64(math.MaxInt64), `{"int":"18446744073709551615"}`: "18446744073709551615", `{"float":"-Infinity"}`: math.Inf(-1),
		`{"decimal":"12.50"}`: "12.50", `{"decimal":"1e999"}`: "1e999", `{"time":"2026-01-02T03:04:05.000000001Z"}`: time.Date(2026, 1, 2, 3, 4, 5, 1, time.UTC),
	} {
		if got, ok := sqlreach.DecodeArg(json.RawMessage(text)); !ok || got != want {
			t.Errorf("%s: %#v %v, want %#v", text, got, ok, want)
		}
	}
	for _, text := range []string{
		``, `nul`, `9223372036854775808`, `1e999`, `[]`, `{}`, `{"int":1}`, `{"int":null}`, `{"int":"x"}`, `{"int":"1","float":"1"}`, `{"bytes":"?"}`, `{"time":"yesterday"}`,
		`{"decimal":"1; DROP"}`, `{"decimal":"0x1p1"}`, `{"decimal":"inf"}`, `{"decimal":""}`, `{"sql":"now()"}`,
	} {
		if got, ok := sqlreach.DecodeArg(json.RawMessage(text)); ok {
			t.Errorf("%s: %#v", text, got)
		}
	}
}

// FuzzValues writes arguments as values of a row, which read as the same arguments.
func FuzzValues(f *testing.F) {
	for _, seed := range []string{`null`, `true`, `9007199254740993`, `-1`, `1.5`, `3.0`, `1e300`, `"\u0000\"\\"`, `{"bytes":"AP8="}`, `{"float":"NaN"}`, `{"int":"9007199254740993"}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		v, ok := sqlreach.DecodeArg(raw)
		if !ok {
			return
		}
		if _, isTime := v.(time.Time); isTime {
			return // whose form in rows is a text
		}
		text := sqlreach.AppendValue(nil, v, 0)
		if !json.Valid(text) {
			t.Fatalf("%s: %s", raw, text)
		}
		again, ok := sqlreach.DecodeArg(text)
		a, isBytes := v.([]byte)
		number, isFloat := v.(float64)
		switch {
		case !ok:
			t.Errorf("%s: %s is refused", raw, text)
		case isBytes:
			if b, same := again.([]byte); !same || !bytes.Equal(a, b) {
				t.Errorf("%s: %v", text, again)
			}
		case isFloat && math.IsNaN(number):
			if b, same := again.(float64); !same || !math.IsNaN(b) {
				t.Errorf("%s: %v", text, again)
			}
		case again != v:
			if s, isText := v.(string); isText && strings.ToValidUTF8(s, "") != s {
				return
			}
			t.Errorf("%s: %#v, was %#v", text, again, v)
		}
	})
}
