package wasm

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
)

// shifted is a module that names functions wherever one can be named. It imports
// one function, env.triple, and the others give their numbers.
func shifted() []byte {
	number := func(n byte) string { return string([]byte{2, 0, opI32Const, n, opEnd})[1:] }
	bodies := []string{number(1), number(2), number(3),
		"\x00\x41\x64\x24\x00\x0b",                             // 4: start, sets the global
		"\x00\x10\x01\x10\x00\x0b",                             // 5: triple(one())
		"\x00\x20\x00\x11\x00\x00\x0b",                         // 6: through the table
		"\x00\x41\x00\xd2\x02\x26\x00\x41\x00\x11\x00\x00\x0b", // 7: puts two into the table and calls it
		"\x00\x41\x00\x23\x01\x26\x00\x41\x00\x11\x00\x00\x0b", // 8: the same with the global that is two
	}
	var code [][]byte
	for _, b := range bodies {
		code = append(code, append(uleb(len(b)), b...))
	}
	return module(
		section(sectionType, []byte("\x04\x60\x00\x01\x7f\x60\x01\x7f\x01\x7f\x60\x00\x00\x60\x01\x7f\x01\x7f")),
		section(sectionImport, []byte("\x01\x03env\x06triple\x00\x01")),
		section(sectionFunction, []byte("\x08\x00\x00\x00\x02\x00\x01\x00\x00")),
		section(sectionTable, []byte("\x01\x70\x00\x05")),
		section(sectionGlobal, []byte("\x02\x7f\x01\x41\x00\x0b\x70\x00\xd2\x02\x0b")),
		section(sectionExport, []byte("\x06\x05start\x03\x00\x06direct\x00\x05\x08indirect\x00\x06\x06stored\x00\x07\x06global\x00\x08\x06triple\x00\x00")),
		section(sectionStart, []byte("\x04")),
		section(sectionElement, []byte("\x02\x00\x41\x01\x0b\x02\x01\x03\x04\x41\x03\x0b\x02\xd2\x02\x0b\xd2\x03\x0b")),
		section(sectionCode, vector(code...)),
	)
}

func TestFunctionsKeepTheirNames(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, config wazero.RuntimeConfig) {
		w := newTwins(t, config, shifted())
		for _, tt := range []struct {
			export string
			args   []uint64
			want   uint64
		}{
			{"direct", nil, 4}, {"indirect", []uint64{1}, 1}, {"indirect", []uint64{2}, 3}, {"indirect", []uint64{3}, 2},
			{"indirect", []uint64{4}, 3}, {"stored", nil, 2}, {"global", nil, 2}, {"triple", []uint64{5}, 16},
		} {
			if got, trap := w.call(t, tt.export, tt.args...); trap != "" || got[0] != tt.want {
				t.Errorf("%s%v: %v %s, want %d", tt.export, tt.args, got, trap, tt.want)
			}
		}
		if _, trap := w.call(t, "indirect", 0); trap != "" {
			t.Errorf("indirect 0, which was stored: %s", trap)
		}
		if got := int32(w.rewritten.ExportedGlobal("start").Get()); got != -28 {
			t.Errorf("the start function has set %d", got)
		}
		if changed := mutable(w.rewritten, ExportChanged).Get(); changed != 1 {
			t.Errorf("changed %d after table.set", changed)
		}
	})
}

func TestRewrittenModule(t *testing.T) {
	t.Parallel()
	file := complete()
	r := rewrite(t, file)
	if !bytes.Equal(file, complete()) {
		t.Error("the module itself was changed")
	}
	if want := []Global{{exportGlobal + "1", typeI32}}; !slices.Equal(r.Globals, want) {
		t.Errorf("globals %v, want %v", r.Globals, want)
	}
	if r.Changes || r.Loops != 0 || r.Entries != 0 {
		t.Errorf("%+v", r)
	}
	if strings.Contains(string(r.Binary), "manifest") || strings.Contains(string(r.Binary), "between") || strings.Contains(string(r.Binary), ExportChanged) {
		t.Error("it has something that does not belong there")
	}
	s := newSandbox(t, wazero.NewRuntimeConfigCompiler())
	compiled, err := s.CompileModule(t.Context(), r.Binary)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(compiled.ImportedFunctions()); n != 2 {
		t.Errorf("%d imported functions", n)
	}
	if names := exports(compiled); !slices.Equal(names, []string{ExportStart, "run"}) {
		t.Errorf("functions %v", names)
	}
	if again := rewrite(t, complete()); !bytes.Equal(again.Binary, r.Binary) {
		t.Error("another time it is another module")
	}
}

func TestSectionsThatWereNotThere(t *testing.T) {
	t.Parallel()
	_, guest := rewrittenGuest(t, module())
	if units, depth := mutable(guest, ExportUnits).Get(), mutable(guest, ExportDepth).Get(); units != testUnits || depth != testDepth {
		t.Errorf("units %d, depth %d", units, depth)
	}
}

func TestGlobalsAreExported(t *testing.T) {
	t.Parallel()
	file := module(section(sectionGlobal, []byte("\x04\x7f\x01\x41\x07\x0b\x7e\x00\x42\x08\x0b\x7e\x01\x42\x09\x0b\x7d\x01\x43\x00\x00\x80\x3f\x0b")))
	r := rewrite(t, file)
	if want := []Global{{exportGlobal + "0", typeI32}, {exportGlobal + "2", typeI64}, {exportGlobal + "3", typeF32}}; !slices.Equal(r.Globals, want) {
		t.Fatalf("globals %v, want %v", r.Globals, want)
	}
	guest := newSandbox(t, wazero.NewRuntimeConfigCompiler()).instance(t, r.Binary)
	for i, want := range []uint64{7, 9, 0x3f800000} {
		if got := mutable(guest, r.Globals[i].Export).Get(); got != want {
			t.Errorf("%s is %d, want %d", r.Globals[i].Export, got, want)
		}
	}
}

func TestChanges(t *testing.T) {
	t.Parallel()
	others := map[byte][]byte{
		sectionTable: []byte("\x01\x70\x00\x05"), sectionDataCount: {1}, sectionData: []byte("\x01\x01\x01x"),
		sectionElement: []byte("\x01\x01\x00\x01\x00"), // passive
	}
	for name, code := range map[string]string{
		"table.set":   "\x41\x00\xd0\x70\x26\x00",
		"table.grow":  "\xd0\x70\x41\x01\xfc\x0f\x00\x1a",
		"table.init":  "\x41\x00\x41\x00\x41\x01\xfc\x0c\x00\x00",
		"table.fill":  "\x41\x00\xd0\x70\x41\x01\xfc\x11\x00",
		"table.copy":  "\x41\x00\x41\x01\x41\x01\xfc\x0e\x00\x00",
		"data.drop":   "\xfc\x09\x00",
		"elem.drop":   "\xfc\x0d\x00",
		"-table.get":  "\x41\x00\x25\x00\x1a",
		"-table.size": "\xfc\x10\x00\x1a",
		"-memory":     "\x41\x00\x41\x00\x41\x01\xfc\x08\x00\x00\x41\x00\x41\x00\x41\x00\xfc\x0b\x00\x41\x00\x40\x00\x1a",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := rewrite(t, programWith(others, function("\x01\x7f", "\x00", "\x00", "\x20\x00\x04\x40"+code+"\x0b")))
			guest := newSandbox(t, wazero.NewRuntimeConfigCompiler()).instance(t, r.Binary)
			if want := name[0] != '-'; r.Changes != want || (guest.ExportedGlobal(ExportChanged) != nil) != want {
				t.Fatalf("changes %v", r.Changes)
			}
			for arg := range uint64(2) {
				if _, trap := outcome(guest, "0", []uint64{arg}); trap != "" {
					t.Fatal(trap)
				}
				if r.Changes && mutable(guest, ExportChanged).Get() != arg {
					t.Errorf("changed is %d after call %d", mutable(guest, ExportChanged).Get(), arg)
				}
			}
		})
	}
}

// TestLoopOfALateType has a loop with a parameter whose type has an index of two
// bytes.
func TestLoopOfALateType(t *testing.T) {
	t.Parallel()
	types := repeated(70, "\x60\x01\x7f\x01\x7f")
	eachEngine(t, func(t *testing.T, config wazero.RuntimeConfig) {
		w := newTwins(t, config, programWith(map[byte][]byte{sectionType: types}, function("\x01\x7f", "\x01\x7f", "\x00",
			"\x20\x00\x03\xc5\x00\x41\x01\x6b\x22\x00\x20\x00\x0d\x00\x0b")))
		w.call(t, "0", 9)
	})
}

// TestWrongTypesStayWrong has modules that a careless rewrite would repair.
func TestWrongTypesStayWrong(t *testing.T) {
	t.Parallel()
	for name, instructions := range map[string]string{
		"value left in a loop":     "\x03\x40\x41\x00\x0b",
		"value left by a function": "\x41\x00",
		"value left at a return":   "\x03\x40\x0f\x41\x00\x0b\x10\x00\x41\x00",
		"else without if":          "\x02\x40\x05\x0b",
		"else of the function":     "\x05",
		"else of a loop":           "\x03\x40\x41\x01\x1a\x05\x0b",
		"no length":                "\x41\x00\x41\x00\xfc\x0b\x00",
		"long length":              "\x41\x00\x41\x00\x42\x00\xfc\x0b\x00",
		"nothing to branch with":   "\x02\x7f\x0c\x00\x0b\x1a",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSandbox(t, wazero.NewRuntimeConfigCompiler())
			file := program(function("\x00", "\x00", "\x00", instructions))
			if _, err := s.CompileModule(context.Background(), file); err == nil {
				t.Fatal("the plain module is right")
			}
			if _, err := s.CompileModule(context.Background(), rewrite(t, file).Binary); err == nil {
				t.Error("the rewritten one is right")
			}
		})
	}
}

func TestNamesOfTheHostAreRefused(t *testing.T) {
	t.Parallel()
	exported := func(name string) []byte {
		return module(oneGlobal, section(sectionExport, vector(append(append(uleb(len(name)), name...), KindGlobal, 0))))
	}
	imported := func(module, name string) []byte {
		entry := append(append(uleb(len(module)), module...), append(uleb(len(name)), name...)...)
		return section(sectionImport, vector(append(entry, KindFunction, 0)))
	}
	tests := []struct {
		name    string
		module  []byte
		section string
	}{
		{"export", exported(ExportUnits), "export"},
		{"export of a later version", exported(SandboxModule + "2"), "export"},
		{"import", module(oneType, imported(SandboxModule, ImportInterrupt)), "import"},
		{"imported name", module(oneType, imported("env", ExportDepth)), "import"},
	}
	for _, tt := range tests {
		_, err := Decode(tt.module, Options{})
		wantRefusal(t, err, tt.section, "begins with "+SandboxModule)
	}
	if _, err := Decode(exported("flowhost:sandbo"), Options{}); err != nil {
		t.Error(err)
	}
}

// TestNothingOfTheHostCanBeNamed has indices that would mean what the host adds.
func TestNothingOfTheHostCanBeNamed(t *testing.T) {
	t.Parallel()
	export := func(kind, index byte) []byte {
		return section(sectionExport, []byte{1, 1, 'x', kind, index})
	}
	tests := []struct {
		name, section string
		module        []byte
	}{
		{"global.get", "code", code("\x00", "\x23\x01\x1a\x0b")},
		{"global.set", "code", code("\x00", "\x42\x00\x24\x01\x0b")},
		{"call", "code", code("\x00", "\x10\x01\x0b")},
		{"ref.func", "code", code("\x00", "\xd2\x01\x1a\x0b")},
		{"initial value", "global", module(oneGlobal[:len(oneGlobal)-5], []byte("\x7f\x00\x23\x00\x0b"))},
		{"initial reference", "global", module(oneType, oneImport, section(sectionGlobal, []byte("\x01\x70\x00\xd2\x01\x0b")))},
		{"exported global", "export", module(oneGlobal, export(KindGlobal, 1))},
		{"exported function", "export", module(oneType, oneImport, export(KindFunction, 1))},
		{"element", "element", module(oneType, oneImport, section(sectionElement, []byte("\x01\x01\x00\x01\x01")))},
		{"element expression", "element", module(oneType, oneImport, section(sectionElement, []byte("\x01\x05\x70\x01\xd2\x01\x0b")))},
		{"offset", "data", module(section(sectionData, []byte("\x01\x00\x23\x00\x0b\x00")))},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := Decode(tt.module, Options{})
			wantRefusal(t, err, tt.section, "is used and there are")
		})
	}
}
