package wasm

import (
	"errors"
	"runtime"
	"strings"
	"testing"
)

// hostile is modules that end or stall a runtime that decodes or compiles them,
// or that make its instances hold more than they should. They must not reach one.
var hostile = []struct {
	name    string
	module  []byte
	section string // where it is refused
	reason  string
}{
	// A vector's count is given to make before it is compared with anything.
	{"types", module(section(sectionType, []byte(many))), "type", "4294967295 types"},
	{"parameters", module(section(sectionType, []byte("\x01\x60"+many))), "type", "4294967295 parameters"},
	{"results", module(section(sectionType, []byte("\x01\x60\x00"+many))), "type", "4294967295 results"},
	{"imports", module(section(sectionImport, []byte(many))), "import", "4294967295 imports"},
	{"functions", module(section(sectionFunction, []byte(many))), "function", "4294967295 functions"},
	{"tables", module(section(sectionTable, []byte(many))), "table", "4294967295 tables"},
	{"globals", module(section(sectionGlobal, []byte(many))), "global", "4294967295 globals"},
	{"exports", module(section(sectionExport, []byte(many))), "export", "4294967295 exports"},
	{"element segments", module(section(sectionElement, []byte(many))), "element", "4294967295 element segments"},
	{"elements", module(section(sectionElement, []byte("\x01\x00\x41\x00\x0b"+many))), "element", "4294967295 elements"},
	{"element expressions", module(section(sectionElement, []byte("\x01\x05\x70"+many))), "element", "4294967295 elements"},
	{"data count", module(section(sectionDataCount, []byte(many))), "data count", "4294967295 data segments"},
	{"data segments", module(section(sectionData, []byte(many))), "data", "4294967295 data segments"},
	{"code", module(section(sectionCode, []byte(many))), "code", "4294967295 function bodies"},
	{"groups of locals", code(many, "\x0b"), "code", "4294967295 groups of locals"},
	{"locals", code("\x01"+many+"\x7f", "\x0b"), "code", "function 0 has 4294967295 locals"},
	{"targets", code("\x00", "\x41\x00\x0e"+many+"\x0b"), "code", "4294967295 targets of a branch"},

	// The same within the limits, but not within the file.
	{"types that are not there", module(section(sectionType, []byte("\xe8\x07"))), "type", "1000 types are announced, and 0 bytes are left"},
	{"functions that are not there", module(section(sectionFunction, []byte("\xe8\x07\x00"))), "function", "1000 functions are announced"},
	{"export name", module(section(sectionExport, []byte("\x01\xff\xff\xff\x7f\x00\x00"))), "export", "268435455 bytes are announced"},
	{"import name", module(section(sectionImport, []byte("\x01\xff\xff\xff\x7f\x00\x00"))), "import", "268435455 bytes are announced"},
	{"custom section's name", module(section(sectionCustom, []byte("\xff\xff\xff\x7f"))), "custom", "268435455 bytes are announced"},
	{"data", module(section(sectionData, []byte("\x01\x01\xff\xff\xff\x7f"))), "data", "268435455 bytes are announced"},
	{"section size", append(module(), "\x01"+many...), "type", "4294967295 bytes long"},
	{"body size", module(section(sectionType, []byte("\x01\x60\x00\x00")), section(sectionFunction, []byte("\x01\x00")), section(sectionCode, []byte("\x01\xff\x07\x00\x0b"))), "code", "function 0 is 1023 bytes long and 2 are left"},

	// Small entries that a runtime keeps in a large form.
	{"locals of all functions", functions(bytesOf(201, "\x01\x88\x27\x7f\x0b")...), "code", "the functions up to 200 have 1005000 locals"},
	{"locals in groups", code("\x02\xb8\x17\x7f\xb8\x17\x7e", "\x0b"), "code", "function 0 has 6000 locals"},
	{"elements of all segments", module(oneType, oneImport, section(sectionElement, vector(bytesOf(2, "\x01\x00"+string(repeated(60_000, "\x00")))...))), "element", "120000 elements"},
	{"many parameters", module(section(sectionType, []byte("\x01\x60"), repeated(129, "\x7f"), []byte("\x00"))), "type", "129 parameters"},

	{"long body", code("\x00", strings.Repeat("\x41\x00\x04\x40\x01\x0b", 1100<<10/6)+"\x0b"), "code", "function 0 is 1126400 bytes long and the limit is 524288"},
	// Blocks in blocks, for whatever walks them recursively.
	{"deep nesting", code("\x00", strings.Repeat("\x02\x40", 4_001)+strings.Repeat("\x0b", 4_002)), "code", "function 0 nests 4001 blocks"},
	// Two bytes each that push and pop hundreds of values.
	{"calls of many values", module(
		section(sectionType, []byte("\x01\x60"), repeated(128, "\x7f"), repeated(128, "\x7f")),
		section(sectionFunction, []byte("\x01\x00")),
		section(sectionCode, bodyOf("\x00\x00"+strings.Repeat("\x10\x00", 2_000)+"\x0b"))), "code", "function 0 pass 262400 values"},
	// A table of targets, each with all the values.
	{"branches of many values", module(
		section(sectionType, []byte("\x01\x60\x00"), repeated(128, "\x7f")),
		section(sectionFunction, []byte("\x01\x00")),
		section(sectionCode, bodyOf("\x00\x00\x0e\xb8\x17"+strings.Repeat("\x00", 3_001)+"\x0b"))), "code", "function 0 pass 262272 values"},

	// Tables are outside a runtime's limit of memory.
	{"large tables", module(section(sectionTable, repeated(4, "\x70\x00\x80\x80\x80\x40"))), "table", "start with 134217728 elements"},
	{"huge table", module(section(sectionTable, []byte("\x01\x70\x00"+many))), "table", "start with 4294967295 elements"},
	{"many tables", module(section(sectionTable, repeated(100, "\x70\x00\x01"))), "table", "100 tables"},
	{"imported table", module(section(sectionImport, []byte("\x01\x01a\x01t\x01\x70\x00"+many))), "import", "start with 4294967295 elements"},
	{"huge memory", module(section(sectionMemory, []byte("\x01\x00\x81\x80\x04"))), "memory", "more than 65536 pages"},

	// Sections that decoders trust to come once and in order.
	{"out of order", module(section(sectionFunction, []byte("\x00")), section(sectionType, []byte("\x00"))), "type", "it comes after the function section"},
	{"twice", module(section(sectionType, []byte("\x00")), section(sectionType, []byte("\x00"))), "type", "there are two of it"},
	{"data count after code", module(section(sectionCode, []byte("\x00")), section(sectionDataCount, []byte("\x00"))), "data count", "it comes after the code section"},
	{"element after data count", module(section(sectionDataCount, []byte("\x00")), section(sectionElement, []byte("\x00"))), "element", "it comes after the data count section"},
	{"unknown section", module(section(14)), "unknown", "no section has the number 14"},
	{"bytes after a vector", module(section(sectionType, []byte("\x00\x00"))), "type", "1 bytes are left at its end"},
	{"functions without code", module(section(sectionType, []byte("\x01\x60\x00\x00")), section(sectionFunction, []byte("\x01\x00"))), "code", "it is missing, and 1 functions are declared"},
	{"code without functions", module(section(sectionCode, []byte("\x01\x02\x00\x0b"))), "code", "1 function bodies and 0 functions"},
	{"more data than counted", module(section(sectionDataCount, []byte("\x00")), section(sectionData, []byte("\x01\x01\x00"))), "data count", "announces 0 data segments and there are 1"},
	{"number of six bytes", module(section(sectionType, []byte("\x80\x80\x80\x80\x80\x00"))), "type", "more than 32 bits"},
	{"number of 33 bits", module(section(sectionType, []byte("\xff\xff\xff\xff\x1f"))), "type", "more than 32 bits"},
	{"name that is no text", module(section(sectionExport, []byte("\x01\x01\xff\x00\x00"))), "export", "UTF-8"},

	// Indices that point nowhere.
	{"unknown type", module(section(sectionFunction, []byte("\x01\x00"))), "function", "type 0 is used and there are 0"},
	{"unknown start", module(section(sectionStart, []byte("\x00"))), "start", "function 0 is used and there are 0"},
	{"unknown function", code("\x00", "\x10\x01\x0b"), "code", "function 1 is used and there are 1"},
	{"unknown block type", code("\x00", "\x02\x01\x0b\x0b"), "code", "a block of type 1"},
	{"branch out of the function", code("\x00", "\x0c\x01\x0b"), "code", "branches out of 2 blocks and is in 1"},
	{"code after its end", code("\x00", "\x0b\x01"), "code", "1 bytes after its end"},
	{"code without an end", code("\x00", "\x01\x01"), "code", "ends early"},
	{"padded vector instruction", code("\x00", "\xfd\x8c\x00\x0b"), "code", "padded"},
}

func bytesOf(n int, entry string) [][]byte {
	entries := make([][]byte, n)
	for i := range entries {
		entries[i] = []byte(entry)
	}
	return entries
}

// bodyOf is the content of a code section with one body.
func bodyOf(instructions string) []byte {
	return append([]byte{1}, append(uleb(len(instructions)), instructions...)...)
}

// TestHostileModules is not parallel: it counts what is allocated meanwhile.
func TestHostileModules(t *testing.T) {
	for _, tt := range hostile {
		t.Run(tt.name, func(t *testing.T) {
			var err error
			used := allocated(func() { _, err = Decode(tt.module, Options{}) })
			wantRefusal(t, err, tt.section, tt.reason)
			if bound := memoryBound(len(tt.module)); used > bound {
				t.Errorf("%d bytes were allocated for %d, want at most %d", used, len(tt.module), bound)
			}
		})
	}
}

// memoryBound is what Decode may allocate for a module of that size.
func memoryBound(size int) uint64 { return uint64(16*size + 32<<10) }

func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func wantRefusal(t *testing.T, err error, section, reason string) {
	t.Helper()
	fault, ok := errors.AsType[*Error](err)
	if !ok {
		t.Fatalf("error %v, want an Error", err)
	}
	if !strings.Contains(fault.Section, section+" section") || !strings.Contains(fault.Reason, reason) || fault.Hint == "" {
		t.Errorf("%v; %s\nwant in the %s section: %s", fault, fault.Hint, section, reason)
	}
	if strings.Contains(fault.Reason, "limit") != (fault.Limit > 0) {
		t.Errorf("%v: the limit is stated as %d", fault, fault.Limit)
	}
	if strings.Count(fault.Error(), fault.Section) != 1 || !strings.Contains(fault.Error(), "byte 0x") {
		t.Errorf("message %q", fault.Error())
	}
}

func TestModuleThatIsCutShort(t *testing.T) {
	t.Parallel()
	whole := complete()
	ends := wholeAt(whole)
	for n := range len(whole) + 1 {
		m, err := Decode(whole[:n:n], Options{})
		if (err == nil) != ends[n] {
			t.Errorf("the first %d bytes of %d: %+v, %v", n, len(whole), m, err)
		}
	}
}

// wholeAt says at which lengths the complete module is one: between sections,
// but not where functions lack their code or data that was counted is missing.
func wholeAt(module []byte) map[int]bool {
	ends := map[int]bool{headerSize: true}
	for at, last := headerSize, 0; at < len(module); {
		id := int(module[at])
		at += 2 + int(module[at+1])
		last = max(last, id%sectionDataCount)
		ends[at] = last < sectionFunction || last == sectionData
	}
	return ends
}
