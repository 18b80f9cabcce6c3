//go:build !wasip1

package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/flowhost/flowhost/sdk"
	"github.com/flowhost/flowhost/sdk/sdktest"
)

// want calls a function with input as JSON and compares its output as JSON, or the code of its
// failure.
func want(t *testing.T, function, input, output string) {
	t.Helper()
	outside := &sdktest.Outside{Artifacts: map[string][]byte{}, Secrets: map[string]string{"key": "secret"}}
	r := sdktest.Invoke(t.Context(), function, json.RawMessage(input), sdktest.Options{Outside: outside})
	got := string(r.Output)
	if r.Failure != nil {
		got = r.Failure.Code + ": " + r.Failure.Message
	}
	if got != output && !strings.HasPrefix(got, output+":") {
		t.Errorf("%s %s:\n got %s\nwant %s", function, input, got, output)
	}
}

func TestFunctions(t *testing.T) {
	t.Parallel()
	want(t, "csv.parse", `{"text":"a,b\n1,\"x,y\"\n007,\n","types":true}`, `{"columns":["a","b"],"rows":[{"a":1,"b":"x,y"},{"a":"007","b":null}],"truncated":false}`)
	want(t, "csv.parse", `{"text":"1;2\n3;4\n","delimiter":";","columns":["x","y"],"max_rows":1}`, `{"columns":["x","y"],"rows":[{"x":"1","y":"2"}],"truncated":true}`)
	want(t, "csv.parse", `{"text":"a,b\n1\n"}`, `csv`)
	want(t, "csv.parse", `{"text":"a,a\n1,2\n"}`, `csv`)
	want(t, "csv.parse", `{"text":"a,a\n1,2\n","columns":["x","y"],"header":true}`, `{"columns":["x","y"],"rows":[{"x":"1","y":"2"}],"truncated":false}`)
	want(t, "csv.parse", `{"text":""}`, `{"columns":[],"rows":[],"truncated":false}`)
	want(t, "csv.parse", `{}`, `input`)
	want(t, "csv.format", `{"rows":[{"b":"x,y","a":1.5},{"a":null,"b":true}]}`, `{"text":"a,b\n1.5,\"x,y\"\n,true\n"}`)
	want(t, "csv.format", `{"rows":[{"a":1},{"b":2}]}`, `input`)

	want(t, "jsonl.parse", `{"text":"{\"a\":1}\n\n[2]"}`, `{"items":[{"a":1},[2]],"truncated":false}`)
	want(t, "jsonl.parse", `{"text":"{\n"}`, `jsonl`)
	want(t, "jsonl.format", `{"items":[{"a": 1}, null]}`, `{"text":"{\"a\":1}\nnull\n"}`)

	want(t, "hash.main", `{"text":"abc","algorithm":"md5"}`, `{"hex":"900150983cd24fb0d6963f7d28e17f72","base64":"kAFQmDzST7DWlj99KOF/cg=="}`)
	want(t, "hash.main", `{"text":"abc","algorithm":"crc"}`, `input`)
	want(t, "hash.main", `{"text":"abc","secret":"nobody's"}`, `denied`)

	want(t, "assert.main", `{"that":{"one is one":true},"data":[1]}`, `[1]`)
	want(t, "assert.main", `{"that":{"b":false,"a":false,"c":true}}`, `assert: not true: a; b`)
	want(t, "sleep.main", `{"for":"1ms"}`, `{}`)
	want(t, "sleep.main", `{"for":"soon"}`, `input`)
}

// What an archive has been made of comes out of it again.
func TestArchives(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"zip", "tar", "tar.gz"} {
		outside := &sdktest.Outside{Artifacts: map[string][]byte{}}
		o := sdktest.Options{Outside: outside}
		one, two := "one", strings.Repeat("two ", 10_000)
		made := sdktest.Call(t.Context(), create, Contents{Format: format, Files: []Content{
			{Name: "a/one.txt", Source: Source{Text: &one}}, {Name: "two.txt", Source: Source{Text: &two}},
		}}, o)
		if made.Failure != nil {
			t.Fatal(format, made.Failure)
		}
		all := sdktest.Call(t.Context(), extract, Archive{Artifact: made.Value}, o)
		if all.Failure != nil || len(all.Value.Files) != 2 {
			t.Fatal(format, all.Value, all.Failure)
		}
		for i, text := range []string{one, two} {
			if got := string(outside.Artifacts[all.Value.Files[i].Artifact.Digest]); got != text {
				t.Errorf("%s: %d bytes of %s", format, len(got), all.Value.Files[i].Name)
			}
		}
		some := sdktest.Call(t.Context(), extract, Archive{Artifact: made.Value, Format: format, Only: []string{"a/"}}, o)
		if len(some.Value.Files) != 1 || some.Value.Files[0].Name != "a/one.txt" {
			t.Error(format, some.Value, some.Failure)
		}
		wrong := sdktest.Call(t.Context(), create, Contents{Format: format, Files: []Content{{Name: "../x", Source: Source{Text: &one}}}}, o)
		if wrong.Failure == nil || wrong.Failure.Code != "input" {
			t.Error(format, wrong.Failure)
		}
	}
	outside := &sdktest.Outside{Artifacts: map[string][]byte{}}
	text := sdktest.Call(t.Context(), func(ctx sdk.Context, _ struct{}) (Stored, error) { return store(ctx, []byte("no archive"), "x") }, struct{}{}, sdktest.Options{Outside: outside})
	if r := sdktest.Call(t.Context(), extract, Archive{Artifact: *text.Value.Artifact}, sdktest.Options{Outside: outside}); r.Failure == nil || r.Failure.Code != "archive" {
		t.Error(r.Failure)
	}
}
