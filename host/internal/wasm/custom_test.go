package wasm

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
)

const manifestName = "flowhost.manifest"

func TestWithCustom(t *testing.T) {
	t.Parallel()
	types, other, old := section(sectionType, uleb(0)), custom("name", "\x00"), custom(manifestName, "old")
	fresh := custom(manifestName, "new")
	for name, tt := range map[string]struct{ module, want []byte }{
		"none there":         {module(types), module(types, fresh)},
		"no section at all":  {module(), module(fresh)},
		"replaced":           {module(types, old), module(types, fresh)},
		"at the beginning":   {module(old, types, other), module(types, other, fresh)},
		"several":            {module(old, types, old, fresh), module(types, fresh)},
		"others stay":        {module(other, types, custom("flowhost", "x")), module(other, types, custom("flowhost", "x"), fresh)},
		"a name it begins":   {module(custom(manifestName+"2", "x")), module(custom(manifestName+"2", "x"), fresh)},
		"sections unordered": {module(section(sectionData, uleb(0)), types), module(section(sectionData, uleb(0)), types, fresh)},
	} {
		before := bytes.Clone(tt.module)
		got, err := WithCustom(tt.module, manifestName, []byte("new"))
		if err != nil || !bytes.Equal(got, tt.want) {
			t.Errorf("%s: %q, %v, want %q", name, got, err, tt.want)
		}
		if !bytes.Equal(tt.module, before) {
			t.Errorf("%s: the module itself was changed", name)
		}
	}
}

func TestPlain(t *testing.T) {
	t.Parallel()
	types, other := section(sectionType, uleb(0)), custom("name", "\x00")
	for name, binary := range map[string][]byte{
		"no section": module(), "custom only": module(other, other), "around": module(other, types, other), "none": module(types),
	} {
		m, err := Decode(binary, Options{})
		if err != nil {
			t.Fatal(name, err)
		}
		want := module()
		if len(m.sections) > 0 {
			want = module(types)
		}
		if got := m.Plain(); !bytes.Equal(got, want) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestWithCustomIsFoundByDecode(t *testing.T) {
	t.Parallel()
	content := []byte(strings.Repeat("{}", 300)) // more than one byte of length
	edited, err := WithCustom(complete(), manifestName, content)
	if err != nil {
		t.Fatal(err)
	}
	m, err := Decode(edited, Options{Custom: manifestName, CustomSize: len(content)})
	if err != nil || !bytes.Equal(m.Custom, content) {
		t.Errorf("%v, %v", m, err)
	}
}

func TestCustomSectionsOfWhatIsNoModule(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		file   []byte
		reason string
	}{
		"text":             {[]byte("hello"), "not a WebAssembly module"},
		"nothing":          {nil, "ends early"},
		"cut in a section": {module(section(sectionType, uleb(0)))[:headerSize+2], "ends early"},
		"cut in a size":    {append(module(), sectionType, 0x80), "ends early"},
		"size of 5 GiB":    {append(module(), sectionType, 0xff, 0xff, 0xff, 0xff, 0x1f), "more than 32 bits"},
		"name too long":    {module(section(sectionCustom, []byte("\x05a"))), "5 bytes are announced and 1 are left"},
		"name not UTF-8":   {module(section(sectionCustom, []byte("\x01\xff"))), "not valid UTF-8"},
	} {
		_, err := WithCustom(tt.file, manifestName, nil)
		if fault, ok := errors.AsType[*Error](err); !ok || !strings.Contains(fault.Error(), tt.reason) || fault.Hint == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzCustom holds that a section comes and goes without a trace, whatever else a
// module is made of, and that it does not change what is decoded.
func FuzzCustom(f *testing.F) {
	f.Add(complete(), "content")
	f.Add(module(), "")
	f.Add(module(custom(manifestName, "old"), custom("", "x"), custom(manifestName, "")), "new")
	f.Add(randomProgram(1, nil), "{}")
	f.Add([]byte("\x00asm"), "")
	f.Fuzz(func(t *testing.T, binary []byte, content string) {
		before := slices.Clone(binary)
		plain, err := WithoutCustom(binary, manifestName)
		if _, decodes := Decode(binary, Options{}); err != nil && decodes == nil {
			t.Fatalf("a good module is refused: %v", err)
		}
		if err != nil {
			return
		}
		edited, err := WithCustom(binary, manifestName, []byte(content))
		if err != nil {
			t.Fatal(err)
		}
		if stripped, err := WithoutCustom(edited, manifestName); err != nil || !bytes.Equal(stripped, plain) {
			t.Fatalf("stripped it is %x, %v, and was %x", stripped, err, plain)
		}
		if again, err := WithCustom(edited, manifestName, []byte(content)); err != nil || !bytes.Equal(again, edited) {
			t.Fatalf("done twice it is %x, %v, and once %x", again, err, edited)
		}
		if !bytes.Equal(binary, before) {
			t.Fatal("the module itself was changed")
		}
		if _, err := Decode(plain, Options{}); err != nil {
			return
		}
		m, err := Decode(edited, Options{Custom: manifestName, CustomSize: len(content)})
		if err != nil || string(m.Custom) != content {
			t.Fatalf("what was put in is %v, %v", m, err)
		}
	})
}
