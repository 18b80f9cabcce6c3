package wasm

import (
	"bytes"
	"testing"
)

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
