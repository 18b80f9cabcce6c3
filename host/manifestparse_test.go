package host

import "testing"

func FuzzManifest(f *testing.F) {
	f.Add([]byte(`{"abi":1,"name":"x","functions":[{"name":"a","input":{"type":"string"}},{"name":"b"}]}`))
	f.Add([]byte(`{"abi":1,"functions":[{"name":"flowhost_invoke"}]}`))
	f.Add([]byte(`{"abi":1,"functions":null}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := parseManifest(text)
		if err != nil {
			return
		}
		seen := map[string]bool{}
		for _, fn := range m.Functions {
			if !validName(fn.Name) || seen[fn.Name] {
				t.Errorf("function %q was taken", fn.Name)
			}
			seen[fn.Name] = true
		}
	})
}

func FuzzManifestWords(f *testing.F) {
	f.Add([]byte(`{"abi":1,"functions":[{"name":"a","input":{"type":"string"}}],"x":1}`))
	f.Add([]byte(`{"abi":1,"functions":[{"nme":"a"}]}`))
	f.Add([]byte(`{"abi":1,"Functions":[null]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if _, err := parseManifest(text); err != nil {
			return
		}
		compact, err := compacted(text)
		if err != nil {
			t.Fatalf("what parses is not compacted: %v", err)
		}
		before, after := checkWords(text), checkWords(compact)
		if (before == nil) != (after == nil) {
			t.Fatalf("%v before, %v after white space is left out", before, after)
		}
	})
}
