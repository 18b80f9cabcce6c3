package ctyjson

import (
	"bytes"
	"strings"
	"testing"
)

// rewritten is the JSON in the form in which Encode writes it.
func rewritten(src string, steps ...Step) (string, error) {
	out, err := Extract(nil, []byte(src), steps, Unmetered{})
	return string(out), err
}

func TestRewrite(t *testing.T) {
	t.Parallel()
	long := `{"i":1,"h":1,"g":1,"f":1,"e":1,"d":1,"c":1,"b":1,"a":1,"i":2}`
	for src, want := range map[string]string{
		` [ true , false , null ] `:    `[true,false,null]`,
		`{}`:                           `{}`,
		`[ ]`:                          `[]`,
		`{"b":1,"a":{"d":1,"c":2}}`:    `{"a":{"c":2,"d":1},"b":1}`,
		`{"a":1,"a":{"x":2}}`:          `{"a":{"x":2}}`,
		`{"b":0,"a":1,"b":2,"a":3}`:    `{"a":3,"b":2}`,
		`{"\u0061":1,"a":2}`:           `{"a":2}`,
		`{"a\n":1,"a\t":2,"a\"":3}`:    `{"a\t":2,"a\n":1,"a\"":3}`,
		"{\"e\u0301\":1,\"\u00e9\":2}": "{\"\u00e9\":2}",
		long:                           `{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":2}`,
		`[0,-0,-0.0,0.0,1.0,10,-1.50]`: `[0,0,0,0,1,10,-1.5]`,
		`[1e3,1E+2,25e-1]`:             `[1000,100,2.5]`,
		`123456789012345678901.50`:     `123456789012345678901.5`,
		`"\u00e9\/\ud800"`:             "\"\u00e9/\ufffd\"",
		"\"\x7f<>&\"":                  "\"\x7f<>&\"",
	} {
		if got, err := rewritten(src); err != nil || got != want {
			t.Errorf("%s: %s %v", src, got, err)
		}
	}
}

func TestExtract(t *testing.T) {
	t.Parallel()
	name := func(s string) Step { return Step{Name: s, Index: -1} }
	item := func(i int) Step { return Step{Index: i} }
	const src = ` {"a":[10,{"b":"x" ,"b":[1.0]}], "a\u0062":true, "n":null} `
	for _, c := range []struct {
		src   string
		steps []Step
		want  string // empty: there is no such place, or the JSON is wrong
	}{
		{src, []Step{name("a")}, `[10,{"b":[1]}]`},
		{src, []Step{name("a"), item(0)}, `10`},
		{src, []Step{name("a"), item(1), name("b"), item(0)}, `1`},
		{src, []Step{name("ab")}, `true`},
		{src, []Step{name("n")}, `null`},
		{src, []Step{name("c")}, ``},
		{src, []Step{name("n"), name("a")}, ``},
		{src, []Step{name("a"), item(2)}, ``},
		{src, []Step{name("a"), name("0")}, ``},
		{src, []Step{item(0)}, ``},
		{src + "x", []Step{name("a")}, ``},
		{src + "x", nil, ``},
		{`{"a":1,"b":1e99999}`, []Step{name("a")}, ``},
		{`{"a":1,"b":` + strings.Repeat("[", maxDepth+1) + strings.Repeat("]", maxDepth+1) + `}`, []Step{name("a")}, ``},
		{`{"a":1,"b":"\x"}`, []Step{name("a")}, ``},
		{`{"a":1,"b"}`, []Step{name("a")}, ``},
	} {
		if got, err := rewritten(c.src, c.steps...); got != c.want && err == nil || (err != nil) != (c.want == "") {
			t.Errorf("%.60s %v: %s %v", c.src, c.steps, got, err)
		}
	}
}

// FuzzRewrite holds that rewriting is decoding and encoding, and that every
// member of an object can be had by itself.
func FuzzRewrite(f *testing.F) {
	for _, seed := range []string{
		`{"b":[1,2.50,-0,1e5,"x",null,true],"a":{"":"\ud800"}}`, `{"e\u0301":1,"é":2,"e":3}`, "\"\xff\"", `{"a":1,"b":{"d":1,"c":2},"a":2}`,
		`12345678901234567890.123`, `0.000000000000001`, `999999999999999.9`, `1e71666666`, `-0.10`, `[1.,01]`, `{"i":1,"h":1,"g":1,"f":1,"e":1,"d":1,"c":1,"b":1,"a":1}`,
		`100000000000000000`, `9223372036854775807`, `9223372036854775808`, `123456789012345.6`, `1.00000000000000`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		v, err := Decode(src, Unmetered{})
		given := bytes.Clone(src)
		got, wrong := Extract(nil, given, nil, Unmetered{})
		if (err != nil) != (wrong != nil) {
			t.Fatalf("%q: decoding gives %v, rewriting %v", src, err, wrong)
		}
		if !bytes.Equal(given, src) {
			t.Fatalf("%q was changed", src)
		}
		if err != nil {
			return
		}
		if want, err := Encode(v, Unmetered{}); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%q:\nrewritten %q\nwant      %q %v", src, got, want, err)
		}
		if !v.Type().IsObjectType() {
			return
		}
		for name, member := range v.AsValueMap() {
			want, _ := Encode(member, Unmetered{})
			if got, err := rewritten(string(src), Step{Name: name, Index: -1}); err != nil || got != string(want) {
				t.Fatalf("%q, member %q: got %q %v, want %q", src, name, got, err, want)
			}
		}
	})
}
