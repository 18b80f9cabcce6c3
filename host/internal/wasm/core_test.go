package wasm

import (
	"bytes"
	"testing"
)

func TestCoreKeepsAllButCustomSections(t *testing.T) {
	t.Parallel()
	file := complete()
	m, err := Decode(file, Options{})
	if err != nil {
		t.Fatal(err)
	}
	core := m.Core(0)
	want := file
	for _, dropped := range [][]byte{custom("between", "sections"), custom("manifest", `{"abi":1}`), custom("name", "\x01"+many)} {
		want = bytes.Replace(want, dropped, nil, 1)
	}
	want = bytes.Replace(want, section(sectionTable, []byte("\x02\x70\x00\x05\x6f\x01\x01\x02")),
		section(sectionTable, []byte("\x02\x70\x01\x05\xc0\x84\x3d\x6f\x01\x01\x02")), 1)
	if !bytes.Equal(core, want) {
		t.Errorf("core %x\nwant %x", core, want)
	}
	if bytes.Equal(file, want) || !bytes.Equal(file, complete()) {
		t.Error("the module itself was changed")
	}
	again, err := Decode(core, Options{})
	if err != nil || !bytes.Equal(again.Core(0), core) {
		t.Errorf("the core is not a module whose core it is: %v", err)
	}
}

func TestTablesGetAMaximum(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		table   Table
		maximum int
		want    string
	}{
		{"none stated", Table{typeFuncref, 1, 0, false}, 100, "\x70\x01\x01\x64"},
		{"smaller one stated", Table{typeFuncref, 1, 9, true}, 100, "\x70\x01\x01\x09"},
		{"larger one stated", Table{typeFuncref, 1, 1 << 30, true}, 100, "\x70\x01\x01\x64"},
		{"minimum is larger", Table{typeExternref, 300, 0, false}, 100, "\x6f\x01\xac\x02\xac\x02"},
		{"minimum is larger, maximum stated", Table{typeExternref, 300, 400, true}, 100, "\x6f\x01\xac\x02\xac\x02"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := appendTables([]byte("before"), []Table{tt.table}, tt.maximum)
			want := append([]byte("before"), section(sectionTable, []byte("\x01"+tt.want))...)
			if !bytes.Equal(got, want) {
				t.Errorf("%x, want %x", got, want)
			}
		})
	}
}
