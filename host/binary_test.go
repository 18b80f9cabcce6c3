package host

import (
	"testing"
)

func FuzzSections(f *testing.F) {
	header := "\x00asm\x01\x00\x00\x00"
	f.Add([]byte(header))
	f.Add([]byte(header + "\x00\x09\x04name\x01\x02\x03\x04"))
	f.Add([]byte(header + "\x02\x1c\x05\x01a\x01f\x00\x00\x01a\x01t\x01\x70\x00\x01\x01a\x01m\x02\x01\x01\x02\x01a\x01g\x03\x7f\x00"))
	f.Add([]byte(header + "\x02\x05\xff\xff\xff\xff\x0f"))
	f.Fuzz(func(t *testing.T, module []byte) {
		for _, i := range importsOf(module) {
			if i.Kind == "" {
				t.Errorf("an import without a kind: %+v", i)
			}
		}
		if section := customSection(module, "name"); len(section) > len(module) {
			t.Errorf("a section of %d bytes in %d", len(section), len(module))
		}
	})
}

func TestImportsOfAllKinds(t *testing.T) {
	t.Parallel()
	module := []byte("\x00asm\x01\x00\x00\x00" +
		"\x02\x25\x05" +
		"\x01a\x01f\x00\x00" +
		"\x01a\x01t\x01\x70\x00\x01" +
		"\x01a\x01m\x02\x01\x01\x02" +
		"\x01a\x01g\x03\x7f\x00" +
		"\x01a\x01e\x04\x00\x00")
	var kinds []string
	for _, i := range importsOf(module) {
		kinds = append(kinds, i.Name+" "+i.Kind)
	}
	want := []string{"f function", "t table", "m memory", "g global", "e tag"}
	if len(kinds) != len(want) {
		t.Fatalf("%q, want %q", kinds, want)
	}
	for i := range want {
		if kinds[i] != want[i] {
			t.Errorf("%q, want %q", kinds[i], want[i])
		}
	}
}

func TestCustomSectionIsFoundByName(t *testing.T) {
	t.Parallel()
	module := []byte("\x00asm\x01\x00\x00\x00" + "\x00\x04\x01axy" + "\x00\x03\x01bz" + "\x00\x03\x01bw")
	for name, want := range map[string]string{"a": "xy", "b": "z", "c": ""} {
		if got := customSection(module, name); string(got) != want {
			t.Errorf("section %s: %q, want %q", name, got, want)
		}
	}
}
