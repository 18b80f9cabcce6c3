package run_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/flowhost/flowhost/run"
)

func nestedArrays(depth int, inside string) string {
	return strings.Repeat("[", depth) + inside + strings.Repeat("]", depth)
}

func nestedObjects(depth int, inside string) string {
	return strings.Repeat(`{"a":`, depth) + inside + strings.Repeat("}", depth)
}

func TestCheckPayload(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, data string
		want       error
	}{
		{"nothing", "", run.ErrPayloadSyntax},
		{"half an object", `{"a":`, run.ErrPayloadSyntax},
		{"a scalar", "null", nil},
		{"arrays at the bound", nestedArrays(run.MaxPayloadDepth, "1"), nil},
		{"arrays beyond it", nestedArrays(run.MaxPayloadDepth+1, ""), run.ErrPayloadDepth},
		{"objects at the bound", nestedObjects(run.MaxPayloadDepth, "1"), nil},
		{"objects beyond it", nestedObjects(run.MaxPayloadDepth, "{}"), run.ErrPayloadDepth},
		{"many side by side", "[" + strings.Repeat("[],", 5000) + "{}]", nil},
		{"brackets in a string", `"` + strings.Repeat("[", 5000) + `"`, nil},
		{"brackets behind an escaped quote", `"\"` + strings.Repeat("[", 5000) + `"`, nil},
		{"brackets behind an escaped backslash", `["\\",` + strings.Repeat("[", 1000), run.ErrPayloadDepth},
		{"digits in a string", `"` + strings.Repeat("1", 5000) + `"`, nil},
		{"digits at the bound", strings.Repeat("1", run.MaxPayloadNumber), nil},
		{"digits beyond it", "[" + strings.Repeat("1", run.MaxPayloadNumber+1) + "]", run.ErrPayloadNumber},
		{"digits behind the point", "0." + strings.Repeat("1", run.MaxPayloadNumber), run.ErrPayloadNumber},
		{"zeros", "0." + strings.Repeat("0", run.MaxPayloadNumber) + "1", run.ErrPayloadNumber},
		{"an exponent at the bound", "[1e999,1E-999,1e+000999]", nil},
		{"an exponent beyond it", "1e1000", run.ErrPayloadExponent},
		{"a small one beyond it", "[0.5E-1000 ]", run.ErrPayloadExponent},
		{"a number of a thousand digits after another", "[" + strings.Repeat("1,", 2000) + "1]", nil},
	} {
		if err := run.CheckPayload([]byte(tt.data)); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
	}
}

// reference decides by encoding/json's tokens.
func reference(data []byte) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	for depth := 0; ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		switch token := token.(type) {
		case json.Delim:
			if depth++; token == '}' || token == ']' {
				depth -= 2
			}
			if depth > run.MaxPayloadDepth {
				return run.ErrPayloadDepth
			}
		case json.Number:
			if len(strings.TrimPrefix(token.String(), "-")) > run.MaxPayloadNumber {
				return run.ErrPayloadNumber
			}
			if _, exponent, ok := strings.Cut(strings.ToLower(token.String()), "e"); ok {
				if n, err := strconv.Atoi(exponent); err != nil || n > 999 || n < -999 {
					return run.ErrPayloadExponent
				}
			}
		}
	}
}

// FuzzCheckPayload holds that every text is decided as by a decoder.
func FuzzCheckPayload(f *testing.F) {
	for _, seed := range []string{
		`{"a":[1,-2.5e3,"x\"[\\",null,true]}`, nestedArrays(1001, ""), `"\\\\\"`, `"\`, strings.Repeat("9", 1001), "[1e1000]", "1e", "-",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got := run.CheckPayload(data)
		if !json.Valid(data) {
			if got == nil {
				t.Errorf("%q is not JSON", data)
			}
			return
		}
		if want := reference(data); !errors.Is(got, want) {
			t.Errorf("%q: %v, want %v", data, got, want)
		}
	})
}

func TestCheckPayloadAllocatesNothing(t *testing.T) {
	data := []byte(nestedObjects(500, `[1,2.5,"text with \"escapes\""]`))
	if n := testing.AllocsPerRun(10, func() { _ = run.CheckPayload(data) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkCheckPayload(b *testing.B) {
	for name, unit := range map[string]string{
		"records": `{"id":12345,"name":"a name of usual length","price":12.50,"tags":["red","blue"],"active":true},`,
		"texts":   `"` + strings.Repeat("some longer text, ", 20) + `",`,
		"escapes": `"` + strings.Repeat(`\"`, 200) + `",`,
		"numbers": `1,22,333.5,`,
		"empty":   `"",`,
	} {
		data := []byte("[" + strings.Repeat(unit, 1<<20/len(unit)) + "0]")
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				if err := run.CheckPayload(data); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/valid", func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				if !json.Valid(data) {
					b.Fatal("not valid")
				}
			}
		})
	}
}
