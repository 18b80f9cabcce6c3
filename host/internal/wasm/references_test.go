package wasm

import (
	"bytes"
	"testing"

	"github.com/tetratelabs/wazero"
)

// referring is a module with an import and two functions, of which the first
// refers to what it says, and an element segment or export that comes before.
func referring(before []byte, instructions string) []byte {
	first, second := "\x00"+instructions+"\x0b", "\x00\x0b"
	return module(oneType, oneImport, section(sectionFunction, []byte("\x02\x00\x00")), before,
		section(sectionCode, vector(append(uleb(len(first)), first...), append(uleb(len(second)), second...))))
}

func TestReferencesMustBeDeclared(t *testing.T) {
	t.Parallel()
	for name, before := range map[string][]byte{
		"export":     section(sectionExport, []byte("\x01\x01f\x00\x02")),
		"element":    section(sectionElement, []byte("\x01\x03\x00\x01\x02")),
		"expression": section(sectionElement, []byte("\x01\x05\x70\x01\xd2\x02\x0b")),
		"global":     section(sectionGlobal, []byte("\x01\x70\x00\xd2\x02\x0b")),
	} {
		if _, err := Decode(referring(before, "\xd2\x02\x1a"), Options{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		_, err := Decode(referring(before, "\xd2\x01\x1a"), Options{})
		wantRefusal(t, err, "code", "refers to function 1, which nothing else refers to")
		if _, err := Decode(referring(before, "\xd2")[:len(referring(before, "\xd2"))-6], Options{}); err == nil {
			t.Error("it was taken although it is cut short")
		}
	}
	_, err := Decode(referring(section(sectionStart, []byte("\x01")), "\xd2\x01\x1a"), Options{})
	wantRefusal(t, err, "code", "refers to function 1")
}

// References are in globals: the instruction that makes one on the host's heap each
// time is gone from code.
func TestReferencesAreGlobals(t *testing.T) {
	t.Parallel()
	before := section(sectionElement, []byte("\x01\x03\x00\x02\x00\x02"))
	m, err := Decode(referring(before, "\xd2\x02\x1a\xd2\x00\x1a\x03\x40\xd2\x02\x1a\x41\x00\x0d\x00\x0b"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := m.Rewrite(RewriteOptions{})
	code := r.Binary[bytes.LastIndexByte(r.Binary, sectionCode):]
	if bytes.Contains(code, []byte{opRefFunc}) {
		t.Errorf("code %x", code)
	}
	if want := []byte("\x70\x00\xd2\x00\x0b\x70\x00\xd2\x03\x0b"); !bytes.Contains(r.Binary, want) {
		t.Errorf("%x, want the globals %x in it", r.Binary, want)
	}
	runtime := wazero.NewRuntime(t.Context())
	defer runtime.Close(t.Context())
	if _, err := runtime.CompileModule(t.Context(), r.Binary); err != nil {
		t.Error(err)
	}
}
