package manifest

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

func FuzzManifest(f *testing.F) {
	f.Add([]byte(`{"abi":1,"name":"x","functions":[{"name":"a","input":{"type":"string"}},{"name":"b"}]}`))
	f.Add([]byte(`{"abi":1,"functions":[{"name":"flowhost_invoke"}]}`))
	f.Add([]byte(`{"abi":1,"functions":null}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := Parse(text)
		if err != nil {
			return
		}
		seen := map[string]bool{}
		for _, fn := range m.Functions {
			if !ValidName(fn.Name) || seen[fn.Name] {
				t.Errorf("function %q was taken", fn.Name)
			}
			seen[fn.Name] = true
		}
	})
}

func FuzzManifestProperties(f *testing.F) {
	f.Add([]byte(`{"abi":1,"functions":[{"name":"a","input":{"type":"string"}}],"x":1}`))
	f.Add([]byte(`{"abi":1,"functions":[{"nme":"a"}]}`))
	f.Add([]byte(`{"abi":1,"Functions":[null]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if _, err := Parse(text); err != nil {
			return
		}
		var compact bytes.Buffer
		if err := json.Compact(&compact, text); err != nil {
			t.Fatalf("a parsed manifest cannot be compacted: %v", err)
		}
		before, after := CheckProperties(text), CheckProperties(compact.Bytes())
		if (before == nil) != (after == nil) {
			t.Fatalf("%v before, %v after white space is left out", before, after)
		}
	})
}

func TestManifestsThatAreRefusedBeforeTheyAreRead(t *testing.T) {
	t.Parallel()
	function := func(more string) string { return `{"abi":1,"functions":[{"name":"a"` + more + `}]}` }
	for text, want := range map[string]string{
		function(``): "",
		function(`,"input":{"properties":{"a":{},"A":{}}}`):                                      "",
		function(`,"input":[{"a":1},{"a":1},"a","a"]`):                                           "",
		function(`,"name":"b"`):                                                                  `"name" twice`,
		function(`,"Name":"b"`):                                                                  `"Name" twice`,
		`{"abi":1,"functions":[{"name":"a"}],"functionſ":[]}`:                                    `"functionſ" twice`,
		`{"abi":1,"functions":[{"name":"a"}],"functions":[]}`:                                    `"functions" twice`,
		function(`,"input":{"type":"string","type":"number"}`):                                   `"type" twice`,
		function(`,"input":{"properties":{"a":{"type":1,"type":2}}}`):                            `"type" twice`,
		`{"abi":1,"capabilities":[{"name":"a","NAME":"b"}]}`:                                     `"NAME" twice`,
		function(`,"input":` + strings.Repeat(`{"not":`, 120) + `{}` + strings.Repeat("}", 120)): "",
		function(`,"input":` + strings.Repeat(`{"not":`, 126) + `{}` + strings.Repeat("}", 126)): "nests more than 128",
		function(`,"input":` + strings.Repeat(`[`, 20_000)):                                      "nests more than 128",
	} {
		_, err := Parse([]byte(text))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%.100s: %v, want %q", text, err, want)
		}
	}
}
