package host

import (
	"bytes"
	"encoding/binary"
	"iter"
)

// Section ids and headers of the binary format, WebAssembly core specification
// 2.0, section 5.5.
const (
	sectionCustom = 0
	sectionImport = 2
	headerSize    = 8
)

// checkHeader tells what else a file may be that is not a core module.
func checkHeader(file []byte) *ModuleError {
	const build = "a Go program is built for it with GOOS=wasip1 GOARCH=wasm"
	switch {
	case bytes.HasPrefix(file, []byte("\x00asm\x01\x00\x00\x00")):
		return nil
	case bytes.HasPrefix(file, []byte("\x00asm\x0d\x00\x01\x00")):
		return &ModuleError{
			Reason: "a component, and only core modules can be hosted",
			Hint:   "build it as a core module for wasip1 (wasm32-wasip1), or take the core module out with wasm-tools component unbundle",
		}
	case bytes.HasPrefix(file, []byte("\x00asm")) && len(file) < headerSize, len(file) == 0:
		return &ModuleError{Reason: "not a whole WebAssembly module: the file ends early", Hint: "build or copy it again"}
	case bytes.HasPrefix(file, []byte("\x00asm")):
		return &ModuleError{Reason: "a WebAssembly module of an unknown version", Hint: "build it as a core module, version 1"}
	case bytes.HasPrefix(bytes.TrimSpace(file), []byte("(module")):
		return &ModuleError{Reason: "WebAssembly in its text form", Hint: "assemble it with wat2wasm"}
	}
	return &ModuleError{Reason: "not a WebAssembly module", Hint: build}
}

// sections walks the sections of a module. It ends at the first one that is
// malformed: what reads sections comes after wazero's validation.
func sections(module []byte) iter.Seq2[byte, []byte] {
	return func(yield func(byte, []byte) bool) {
		r := reader{rest: module[min(headerSize, len(module)):]}
		for len(r.rest) > 0 {
			id := r.byte()
			body := r.bytes()
			if r.failed || !yield(id, body) {
				return
			}
		}
	}
}

// customSection is the first custom section of the name, nil without one.
func customSection(module []byte, name string) []byte {
	for id, body := range sections(module) {
		if id != sectionCustom {
			continue
		}
		r := reader{rest: body}
		if found := r.bytes(); !r.failed && string(found) == name {
			return bytes.Clone(r.rest)
		}
	}
	return nil
}

// importsOf lists all imports, without types.
func importsOf(module []byte) []Extern {
	var imports []Extern
	for id, body := range sections(module) {
		if id != sectionImport {
			continue
		}
		r := reader{rest: body}
		for n := r.u32(); n > 0 && !r.failed; n-- {
			i := Extern{Module: string(r.bytes()), Name: string(r.bytes())}
			i.Kind = r.importKind()
			if !r.failed {
				imports = append(imports, i)
			}
		}
	}
	return imports
}

// reader reads the binary format. Once it has failed it gives zero values.
type reader struct {
	rest   []byte
	failed bool
}

func (r *reader) byte() byte {
	if len(r.rest) == 0 {
		r.failed = true
		return 0
	}
	b := r.rest[0]
	r.rest = r.rest[1:]
	return b
}

func (r *reader) u32() uint32 {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 || v>>32 != 0 {
		r.failed, r.rest = true, nil
		return 0
	}
	r.rest = r.rest[n:]
	return uint32(v)
}

// bytes reads a vector of bytes, without copying.
func (r *reader) bytes() []byte {
	n := r.u32()
	if uint64(n) > uint64(len(r.rest)) {
		r.failed, r.rest = true, nil
		return nil
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

// importKind reads what is imported and skips over its type.
func (r *reader) importKind() string {
	switch r.byte() {
	case 0:
		r.u32()
		return KindFunction
	case 1:
		r.byte()
		r.limits()
		return KindTable
	case 2:
		r.limits()
		return KindMemory
	case 3:
		r.byte()
		r.byte()
		return KindGlobal
	case 4:
		r.byte()
		r.u32()
		return KindTag
	}
	r.failed = true
	return ""
}

func (r *reader) limits() {
	hasMax := r.byte()&1 != 0
	r.u32()
	if hasMax {
		r.u32()
	}
}
