package jsonscan_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/flowhost/flowhost/internal/jsonscan"
)

func TestBounds(t *testing.T) {
	nested := func(n int) string { return strings.Repeat(`[{"a":`, n/2) + "0" + strings.Repeat("}]", n/2) }
	for _, c := range []struct {
		text string
		want error
		at   int
	}{
		{nested(jsonscan.MaxDepth), nil, 0},
		{nested(jsonscan.MaxDepth + 2), jsonscan.ErrDepth, jsonscan.MaxDepth / 2 * len(`[{"a":`)},
		{"-" + strings.Repeat("7", jsonscan.MaxNumber), nil, 0},
		{"[7" + strings.Repeat("7", jsonscan.MaxNumber), jsonscan.ErrNumber, 1},
		{"0." + strings.Repeat("7", jsonscan.MaxNumber-2), nil, 0},
		{"0." + strings.Repeat("7", jsonscan.MaxNumber-1), jsonscan.ErrNumber, 0},
		{"1e+000999", nil, 0},
		{`{"n":1e1000}`, jsonscan.ErrExponent, 7},
		{"1E-1000", jsonscan.ErrExponent, 3},
		{`"1e1000"`, nil, 0},
	} {
		_, at, err := jsonscan.Check([]byte(c.text))
		if !errors.Is(err, c.want) || err != nil && at != c.at {
			t.Errorf("Check(%.40s…) = %d, %v; want %d, %v", c.text, at, err, c.at, c.want)
		}
	}
}

// TestKindsOfBrackets has brackets of both kinds on either side of each level at which the
// scanner stores what is outside.
func TestKindsOfBrackets(t *testing.T) {
	for depth := range 200 {
		var open, closed strings.Builder
		for i := range depth {
			if (i*i+i/3)%2 == 0 {
				open.WriteString("[")
			} else {
				open.WriteString(`{"n":`)
			}
		}
		for i := depth - 1; i >= 0; i-- {
			if (i*i+i/3)%2 == 0 {
				closed.WriteString(",1]")
			} else {
				closed.WriteString(`,"m":2}`)
			}
		}
		text := open.String() + "true" + closed.String()
		if _, at, err := jsonscan.Check([]byte(text)); err != nil {
			t.Errorf("depth %d: byte %d: %v", depth, at, err)
		}
		for i := range closed.String() {
			at := len(text) - closed.Len() + i
			other, known := map[byte]string{']': "}", '}': "]"}[text[at]]
			if !known {
				continue
			}
			if _, _, err := jsonscan.Check([]byte(text[:at] + other + text[at+1:])); err == nil {
				t.Errorf("depth %d: the wrong bracket at byte %d is accepted", depth, at)
			}
		}
	}
}

func seeds(f *testing.F) {
	for _, s := range []string{
		"", " ", "null", "nul", "nulL", "true ", "\tfalse\r\n", "t", "tru", "truex", "0", "-", "-0", "01", "1.", ".1", "1.5e", "1e+", "1E-7", "0e0", "--1", "1 2",
		`""`, `"`, `"a`, `"\"`, `"\u12aF"`, `"\u12a"`, `"\x"`, `"\`, `"\u`, "\"\x1f\"", "\"\xff\x80\"", "\"\u2028<&>\"", `"12345678"`, `"1234567\n"`, `"12345678\\90123456789"`,
		"[]", "[ ]", "[,]", "[1,]", "[1 , 2 ]", "[1 2]", "[", "]", "[}", "{]",
		"{}", "{ }", `{"a"}`, `{"a":}`, `{"a":1,}`, `{ "a" : 1 , "b" : [ ] }`, `{"a":1 "b":2}`, `{1:2}`, `{"a":{"a":{"a":[{}]}}}`, `{"long name of it":"and its long text"}`,
		"\ufeff1", "\u00a01", "[1]]", "{}}", "\x00", "[\"a\tb\"]",
	} {
		f.Add([]byte(s))
	}
	f.Add(orders(3))
}

// orders is a document of many short names, texts and numbers.
func orders(items int) []byte {
	var list []string
	for i := range items {
		list = append(list, fmt.Sprintf(`{"sku":"KB-%d","quantity":%d,"price":12.5}`, i, i%7+1))
	}
	return []byte(`{"id":"o-1001","customer":"ada","items":[` + strings.Join(list, ",") + `],"total":154.9}`)
}

// bounded are the errors of what encoding/json accepts.
func bounded(err error) bool {
	return errors.Is(err, jsonscan.ErrDepth) || errors.Is(err, jsonscan.ErrNumber) || errors.Is(err, jsonscan.ErrExponent)
}

// FuzzCheck compares the scanner with encoding/json.
func FuzzCheck(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		form, at, err := jsonscan.Check(data)
		valid := json.Valid(data)
		if at < 0 || at > len(data) {
			t.Fatalf("index %d of %d bytes", at, len(data))
		}
		switch {
		case err == nil && !valid:
			t.Fatal("it is accepted, and is not JSON")
		case err != nil && !bounded(err) && valid:
			t.Fatalf("byte %d of JSON is refused: %v", at, err)
		case err != nil:
			return
		}
		var want bytes.Buffer
		if err := json.Compact(&want, data); err != nil {
			t.Fatal(err)
		}
		got := jsonscan.AppendCompact(nil, data)
		if !bytes.Equal(got, want.Bytes()) {
			t.Fatalf("compact is %q, want %q", got, want.Bytes())
		}
		if form.Spaced != (len(got) != len(data)) {
			t.Fatalf("spaced is %v", form.Spaced)
		}
	})
}

// FuzzText puts any bytes behind text of any length: the scanner reads in steps of eight.
func FuzzText(f *testing.F) {
	f.Add(0, []byte("abc"))
	f.Add(7, []byte(`\u00e9"`))
	f.Add(8, []byte("\n"))
	f.Fuzz(func(t *testing.T, n int, rest []byte) {
		data := []byte(`{"` + strings.Repeat("k", n&31) + `":"` + strings.Repeat("x", n>>5&31) + string(rest) + `"}`)
		if _, at, err := jsonscan.Check(data); (err == nil) != json.Valid(data) && !bounded(err) {
			t.Fatalf("byte %d: %v", at, err)
		}
	})
}
