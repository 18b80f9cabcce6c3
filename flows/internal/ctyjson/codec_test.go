package ctyjson

import (
	"encoding/json"
	"fmt"
	"math/big"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

func TestJSONRoundTrip(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]string{
		`null`:                   `null`,
		` [ true , false ] `:     `[true,false]`,
		`{"b":1,"a":{"c":[]}}`:   `{"a":{"c":[]},"b":1}`,
		`{}`:                     `{}`,
		`[1,"x",null,{"y":[2]}]`: `[1,"x",null,{"y":[2]}]`,
		`12000.10`:               `12000.1`,
		`0.1`:                    `0.1`,
		`-0.000001`:              `-0.000001`,
		`1e3`:                    `1000`,
		`123456789012345678901234567890123456789`: `123456789012345678901234567890123456789`,
		`9007199254740993`:                        `9007199254740993`,
		`3.141592653589793238462643383279502884197169399375105820974944592307816406286`: `3.141592653589793238462643383279502884197169399375105820974944592307816406286`,
		`1e400`:                    `1e+400`,
		`"<a href=\"x\">&\u2028"`:  "\"<a href=\\\"x\\\">&\u2028\"",
		`"\u00e9\n\t\r\u0001\\\/"`: "\"é\\n\\t\\r\\u0001\\\\/\"",
		`"\ud83d\ude00"`:           `"😀"`,
		`{"a":1,"a":2}`:            `{"a":2}`,
	} {
		v, err := Decode([]byte(src), Unmetered{})
		if err != nil {
			t.Errorf("%s: %v", src, err)
			continue
		}
		got, err := Encode(v, Unmetered{})
		if err != nil || string(got) != want {
			t.Errorf("%s: got %s %v, want %s", src, got, err, want)
		}
	}
}

func TestDecodeJSONErrors(t *testing.T) {
	t.Parallel()
	for _, src := range []string{
		"", " ", "nul", "truefalse", "[1,]", "[1 2]", "{", `{"a"}`, `{"a":}`, `{"a":1,}`, `{a:1}`, `"`, `"\x"`, "\"\n\"", "01", "1.", "-", "+1", "1e", "1 2", "]", "NaN",
		"1e99999999999", "\x00", "null\x00", strings.Repeat("[", 2000) + strings.Repeat("]", 2000),
	} {
		if v, err := Decode([]byte(src), Unmetered{}); err == nil {
			t.Errorf("%q gives %#v", src, v)
		}
	}
}

func TestEncodeJSONErrors(t *testing.T) {
	t.Parallel()
	for name, v := range map[string]cty.Value{
		"unknown": cty.ObjectVal(map[string]cty.Value{"a": cty.DynamicVal}),
		"capsule": cty.TupleVal([]cty.Value{cty.CapsuleVal(cty.Capsule("number", reflect.TypeFor[int]()), new(int))}),
		"endless": cty.PositiveInfinity,
	} {
		if got, err := Encode(v, Unmetered{}); err == nil {
			t.Errorf("%s gives %s", name, got)
		}
	}
}

func TestEncodeJSONCollections(t *testing.T) {
	t.Parallel()
	v := cty.ObjectVal(map[string]cty.Value{
		"map":  cty.MapVal(map[string]cty.Value{"b": cty.True.Mark("sensitive"), "a": cty.NullVal(cty.Bool)}),
		"list": cty.ListVal([]cty.Value{cty.StringVal("z"), cty.StringVal("a")}),
		"set":  cty.SetVal([]cty.Value{cty.NumberIntVal(3), cty.NumberIntVal(1), cty.NumberIntVal(3)}),
	})
	got, err := Encode(v, Unmetered{})
	if want := `{"list":["z","a"],"map":{"a":null,"b":true},"set":[1,3]}`; err != nil || string(got) != want {
		t.Errorf("%s %v", got, err)
	}
}

// FuzzJSON compares the conversion with cty's own: what one accepts the other
// does too, and both mean the same value.
func FuzzJSON(f *testing.F) {
	for _, seed := range []string{
		`{"a":[1,2.50,-0,1e5,"x",null,true],"b":{"":"\ud800"}}`, `"\u00e9"`, `[[],{}]`, `1e-400`, `{"e\u0301":1}`, "\"\xff\"", `12345678901234567890.123`, `{"a":1,"a":2}`, `1e71666666`, `1e-71666666`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		v, err := Decode(src, Unmetered{})
		if valid := json.Valid(src); err == nil && !valid {
			t.Fatalf("invalid JSON is accepted: %q", src)
		} else if valid && err != nil {
			if !strings.Contains(err.Error(), "out of range") && !strings.Contains(err.Error(), "nested") {
				t.Fatalf("valid JSON is refused: %q: %v", src, err)
			}
		}
		if err != nil {
			return
		}
		encoded, err := Encode(v, Unmetered{})
		if err != nil || !json.Valid(encoded) {
			t.Fatalf("%q: %q %v", src, encoded, err)
		}
		if again, err := Decode(encoded, Unmetered{}); err != nil || !again.RawEquals(v) {
			t.Fatalf("%q does not come back: %q %v", src, encoded, err)
		}
		sameAsCty(t, src, v, encoded)
	})
}

// sameAsCty compares with cty's own codec: reading both forms of the JSON gives
// the value, and what it writes of the value is read as the same again. Its
// reader takes the types of objects from the JSON, and refuses names that come
// twice with values of different types.
func sameAsCty(t *testing.T, src []byte, v cty.Value, encoded []byte) {
	t.Helper()
	for _, form := range [][]byte{src, encoded} {
		ty, err := ctyjson.ImpliedType(form)
		if err != nil {
			continue
		}
		if got, err := ctyjson.Unmarshal(form, ty); err == nil && !got.RawEquals(v) {
			t.Fatalf("%q: cty reads %#v, we read %#v", form, got, v)
		}
	}
	written, err := ctyjson.Marshal(v, v.Type())
	if err != nil {
		t.Fatalf("%q: cty cannot write it: %v", src, err)
	}
	if got, err := Decode(written, Unmetered{}); err != nil || !got.RawEquals(v) {
		t.Fatalf("%q: cty writes %q, which we read as %#v %v", src, written, got, err)
	}
}

// FuzzNumber does the same with numbers of any size: whole, decimal, and with an
// exponent. They are exact as far as 512 bits go, some 154 digits.
func FuzzNumber(f *testing.F) {
	f.Add("9007199254740993", "", int16(0))
	f.Add("-123456789012345678901234567890123456789012345678901234567890", "000100", int16(0))
	f.Add("0", "1", int16(0))
	f.Add("999999999999999", "9", int16(0))
	f.Add("1", "7976931348623157", int16(308))
	f.Add("4", "9406564584124654", int16(-324))
	f.Add("18446744073709551616", "", int16(-20))
	f.Add("9223372036854775808", "0", int16(0))
	f.Add("-1", strings.Repeat("3", 200), int16(600))
	f.Fuzz(func(t *testing.T, whole, fraction string, exponent int16) {
		src := whole
		if fraction != "" {
			src += "." + fraction
		}
		if exponent != 0 {
			src += fmt.Sprintf("e%d", exponent)
		}
		v, err := Decode([]byte(src), Unmetered{})
		if err != nil || v.Type() != cty.Number {
			return
		}
		encoded, err := Encode(v, Unmetered{})
		if err != nil {
			t.Fatalf("%s: %v", src, err)
		}
		if got, err := rewritten(src); err != nil || got != string(encoded) {
			t.Fatalf("%s: rewritten as %s %v, encoded as %s", src, got, err, encoded)
		}
		sameAsCty(t, []byte(src), v, encoded)
		if fraction == "" && exponent == 0 && len(whole) < 150 {
			exact, _ := new(big.Int).SetString(whole, 10)
			if back, ok := new(big.Int).SetString(string(encoded), 10); !ok || back.Cmp(exact) != 0 {
				t.Fatalf("%s is not exact: %s", src, encoded)
			}
		}
	})
}

// TestNumbersAreExact reads numbers of random digits: they come back as they were
// but for zeros that say nothing.
func TestNumbersAreExact(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 6))
	for range 2000 {
		whole, fraction := make([]byte, 1+r.IntN(70)), make([]byte, r.IntN(70))
		for _, part := range [][]byte{whole, fraction} {
			for i := range part {
				part[i] = byte('0' + r.IntN(10))
			}
		}
		src := strings.TrimLeft(string(whole), "0")
		if src == "" {
			src = "0"
		}
		if len(fraction) > 0 {
			src += "." + string(fraction)
		}
		want := src
		if len(fraction) > 0 {
			want = strings.TrimSuffix(strings.TrimRight(src, "0"), ".")
		}
		v, err := Decode([]byte(src), Unmetered{})
		if err != nil {
			t.Fatal(src, err)
		}
		encoded, err := Encode(v, Unmetered{})
		if err != nil || string(encoded) != want {
			t.Fatalf("%s: encoded as %s %v", src, encoded, err)
		}
		if got, err := rewritten(src); err != nil || got != want {
			t.Fatalf("%s: rewritten as %s %v", src, got, err)
		}
		sameAsCty(t, []byte(src), v, encoded)
	}
}
