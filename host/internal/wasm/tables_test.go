package wasm

import (
	"bytes"
	"slices"
	"testing"
)

func TestTablesGetAMaximum(t *testing.T) {
	t.Parallel()
	file := module(section(sectionTable, []byte("\x02\x70\x00\x01\x6f\x01\xac\x02\xac\x02")))
	m, err := Decode(file, Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := m.Rewrite(RewriteOptions{TableMaximum: 401})
	if want := section(sectionTable, []byte("\x02\x70\x01\x01\x33\x6f\x01\xac\x02\xac\x02")); !bytes.Contains(r.Binary, want) {
		t.Errorf("%x, want %x in it", r.Binary, want)
	}
	if r.TableMinimum != 301 || r.TableMaximum != 301 { // nothing in it grows a table
		t.Errorf("%d to %d elements", r.TableMinimum, r.TableMaximum)
	}
}

func TestTablesShareOneMaximum(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		tables  []Table
		maximum int
		want    []int
	}{
		{"none stated", []Table{{Min: 1}}, 100, []int{100}},
		{"smaller one stated", []Table{{Min: 1, Max: 9, Bounded: true}}, 100, []int{9}},
		{"larger one stated", []Table{{Min: 1, Max: 1 << 30, Bounded: true}}, 100, []int{100}},
		{"minimum is larger", []Table{{Min: 300}}, 100, []int{300}},
		{"minimum is larger, maximum stated", []Table{{Min: 300, Max: 400, Bounded: true}}, 100, []int{300}},
		{"several", []Table{{Min: 10}, {Min: 10}, {Min: 10}, {Min: 10}}, 100, []int{25, 25, 25, 25}},
		{"what one leaves is another's", []Table{{Min: 0, Max: 10, Bounded: true}, {Min: 0}}, 100, []int{10, 90}},
		{"minima take all", []Table{{Min: 60}, {Min: 60}}, 100, []int{60, 60}},
	}
	for _, tt := range tests {
		if got := tableMaxima(tt.tables, tt.maximum); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestTablesThatGrow(t *testing.T) {
	t.Parallel()
	file := module(oneType, section(sectionFunction, []byte("\x01\x00")), section(sectionTable, []byte("\x01\x70\x00\x01")),
		section(sectionCode, bodyOf("\x00\xd0\x70\x41\x01\xfc\x0f\x00\x1a\x0b")))
	m, err := Decode(file, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if r := m.Rewrite(RewriteOptions{TableMaximum: 50}); r.TableMinimum != 1 || r.TableMaximum != 50 {
		t.Errorf("%d to %d elements", r.TableMinimum, r.TableMaximum)
	}
}
