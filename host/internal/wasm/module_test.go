package wasm

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
)

func TestCompleteModule(t *testing.T) {
	t.Parallel()
	m, err := Decode(complete(), Options{Custom: "manifest", CustomSize: 9})
	if err != nil {
		t.Fatal(err)
	}
	outside := Interface{
		Types:    []string{"() -> ()", "(i32) -> i32"},
		Imports:  []Import{{"a", "f", KindFunction, 0}, {"a", "t", KindTable, 0}, {"a", "m", KindMemory, 0}, {"a", "g", KindGlobal, 0}},
		Exports:  []Export{{"run", KindFunction, 1, 1}, {"m", KindMemory, 0, 0}},
		Memories: []Memory{{1, 2, true}},
	}
	if !reflect.DeepEqual(m.Interface, outside) {
		t.Errorf("%+v", m.Interface)
	}
	if tables := []Table{{Type: typeFuncref, Min: 5}, {typeExternref, 1, 2, true}}; !reflect.DeepEqual(m.Tables, tables) {
		t.Errorf("tables %+v", m.Tables)
	}
	if string(m.Custom) != `{"abi":1}` {
		t.Errorf("custom section %q", m.Custom)
	}
	figures := Limits{
		Types: 2, Parameters: 1, TypeValues: 2, Imports: 4, Exports: 2, NameBytes: 12, Globals: 2, Tables: 2, TableMinimum: 7,
		Functions: 1, FunctionBody: 8, Locals: 2, ModuleLocals: 2, Operands: 1,
		DataSegments: 2, ElementSegments: 2, Elements: 2,
	}
	if m.Figures != figures {
		t.Errorf("figures %+v\nwant    %+v", m.Figures, figures)
	}
}

func TestEachLimitHolds(t *testing.T) {
	t.Parallel()
	nested := code("\x02\x01\x7f\x01\x7e", "\x02\x40\x03\x40\x0b\x0b\x10\x00\x0b")
	valued := module(section(sectionType, []byte("\x01\x60\x02\x7f\x7f\x00")), section(sectionFunction, []byte("\x01\x00")),
		section(sectionCode, bodyOf("\x00\x10\x00\x10\x00\x0b")))
	tests := []struct {
		option string
		module []byte
		limits Limits
		over   bool
	}{
		{"Types", complete(), Limits{Types: 1}, true},
		{"Types", complete(), Limits{Types: 2}, false},
		{"Parameters", valued, Limits{Parameters: 1}, true},
		{"Parameters", valued, Limits{Parameters: 2}, false},
		{"TypeValues", valued, Limits{TypeValues: 1}, true},
		{"TypeValues", valued, Limits{TypeValues: 2}, false},
		{"Imports", complete(), Limits{Imports: 3}, true},
		{"Exports", complete(), Limits{Exports: 1}, true},
		{"NameBytes", shifted(), Limits{NameBytes: 45}, true},
		{"NameBytes", shifted(), Limits{NameBytes: 46}, false},
		{"Globals", complete(), Limits{Globals: 1}, true},
		{"Tables", complete(), Limits{Tables: 1}, true},
		{"Tables", complete(), Limits{Tables: 2}, false},
		{"TableMinimum", complete(), Limits{TableMinimum: 6}, true},
		{"TableMinimum", complete(), Limits{TableMinimum: 7}, false},
		{"Functions", functions(bytesOf(2, "\x00\x0b")...), Limits{Functions: 1}, true},
		{"FunctionBody", complete(), Limits{FunctionBody: 7}, true},
		{"FunctionBody", complete(), Limits{FunctionBody: 8}, false},
		{"Locals", nested, Limits{Locals: 1}, true},
		{"Locals", nested, Limits{Locals: 2}, false},
		{"ModuleLocals", nested, Limits{ModuleLocals: 1}, true},
		{"Nesting", nested, Limits{Nesting: 1}, true},
		{"Nesting", nested, Limits{Nesting: 2}, false},
		{"Operands", valued, Limits{Operands: 3}, true},
		{"Operands", valued, Limits{Operands: 4}, false},
		{"DataSegments", complete(), Limits{DataSegments: 1}, true},
		{"ElementSegments", complete(), Limits{ElementSegments: 1}, true},
		{"Elements", complete(), Limits{Elements: 1}, true},
		{"Elements", complete(), Limits{Elements: 2}, false},
	}
	for _, tt := range tests {
		_, err := Decode(tt.module, Options{Limits: tt.limits})
		fault, refused := err.(*Error)
		if refused != tt.over || refused && (fault.Limit == 0 || !strings.HasSuffix(fault.Hint, "Preflight."+tt.option)) {
			t.Errorf("%s %+v: %v", tt.option, tt.limits, err)
		}
	}
}

func TestLaterFeatures(t *testing.T) {
	t.Parallel()
	memory := func(limits string) []byte { return module(section(sectionMemory, []byte(limits))) }
	typed := func(content string) []byte { return module(section(sectionType, []byte(content))) }
	global := func(content string) []byte { return module(section(sectionGlobal, []byte("\x01"+content))) }
	tests := []struct {
		name    string
		module  []byte
		section string
		feature feature
	}{
		{"tag section", module(section(sectionTag, []byte("\x00"))), "tag", exceptions},
		{"imported tag", module(section(sectionImport, []byte("\x01\x01a\x01e\x04\x00\x00"))), "import", exceptions},
		{"exported tag", module(section(sectionExport, []byte("\x01\x01e\x04\x00"))), "export", exceptions},
		{"try", code("\x00", "\x06\x40\x0b\x0b"), "code", exceptions},
		{"throw", code("\x00", "\x08\x00\x0b"), "code", exceptions},
		{"try_table", code("\x00", "\x1f\x40\x00\x0b\x0b"), "code", exceptions},
		{"exnref", typed("\x01\x60\x01\x69\x00"), "type", exceptions},
		{"return_call", code("\x00", "\x12\x00\x0b"), "code", tailCalls},
		{"return_call_indirect", code("\x00", "\x13\x00\x00\x0b"), "code", tailCalls},
		{"atomic", code("\x00", "\xfe\x03\x00\x0b"), "code", threads},
		{"shared memory", memory("\x01\x03\x01\x01"), "memory", threads},
		{"shared global", global("\x7f\x02\x41\x00\x0b"), "global", threads},
		{"64-bit memory", memory("\x01\x04\x01"), "memory", memory64},
		{"64-bit table", module(section(sectionTable, []byte("\x01\x70\x05\x01\x02"))), "table", memory64},
		{"page size", memory("\x01\x08\x01\x00"), "memory", pageSizes},
		{"two memories", memory("\x02\x00\x01\x00\x01"), "memory", memories},
		{"data in another memory", module(section(sectionData, []byte("\x01\x02\x01\x41\x00\x0b\x00"))), "data", memories},
		{"access to another memory", code("\x00", "\x41\x00\x28\x42\x01\x00\x0b"), "code", memories},
		{"growth of another memory", code("\x00", "\x41\x00\x40\x01\x0b"), "code", memories},
		{"relaxed SIMD", code("\x00", "\xfd\x80\x02\x0b"), "code", relaxed},
		{"sum in a constant", global("\x7f\x00\x41\x01\x41\x01\x6a\x0b"), "global", extended},
		{"typed reference", typed("\x01\x60\x01\x63\x00\x00"), "type", references},
		{"call_ref", code("\x00", "\x14\x00\x0b"), "code", references},
		{"table with a value", module(section(sectionTable, []byte("\x01\x40\x00\x70\x00\x01\xd0\x70\x0b"))), "table", references},
		{"struct", typed("\x01\x5f\x01\x7f\x00"), "type", collector},
		{"recursive types", typed("\x01\x4e\x01\x60\x00\x00"), "type", collector},
		{"struct.new", code("\x00", "\xfb\x00\x00\x0b"), "code", collector},
		{"struct in a constant", global("\x7f\x00\xfb\x00\x00\x0b"), "global", collector},
		{"anyref", global("\x6e\x00\xd0\x6e\x0b"), "global", collector},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := Decode(tt.module, Options{})
			wantRefusal(t, err, tt.section, tt.feature.name)
			if fault := err.(*Error); fault.Hint != tt.feature.hint {
				t.Errorf("hint %q, want %q", fault.Hint, tt.feature.hint)
			}
		})
	}
}

func TestFilesThatAreNoModules(t *testing.T) {
	t.Parallel()
	for file, reason := range map[string]string{
		"":                                "ends early",
		"\x00asm\x01":                     "ends early",
		"\x00asm\x0d\x00\x01\x00":         "component",
		"\x00asm\x02\x00\x00\x00":         "unknown version",
		"\n(module)":                      "text form",
		"\x7fELF\x02\x01\x01\x00\x00\x00": "not a WebAssembly module",
	} {
		_, err := Decode([]byte(file), Options{})
		if fault, ok := err.(*Error); !ok || !strings.Contains(fault.Error(), reason) || fault.Hint == "" || fault.Section != "" {
			t.Errorf("%q: %v, want %s", file, err, reason)
		}
	}
}

func TestCustomSections(t *testing.T) {
	t.Parallel()
	file := module(custom("a", "xy"), custom("b", ""), custom("b", "w"), custom("long", strings.Repeat("x", 11)))
	for name, want := range map[string][]byte{"a": []byte("xy"), "b": {}, "c": nil, "": nil} {
		m, err := Decode(file, Options{Custom: name, CustomSize: 10})
		if err != nil || !bytes.Equal(m.Custom, want) || (m.Custom == nil) != (want == nil) {
			t.Errorf("section %q: %q, %v", name, m.Custom, err)
		}
	}
	_, err := Decode(file, Options{Custom: "long", CustomSize: 10})
	wantRefusal(t, err, "custom", "long is 11 bytes long and the limit is 10")
}
