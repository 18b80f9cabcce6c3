package wasm

import "fmt"

// entry is a function of a program.
type entry struct{ params, results, locals, instructions string }

// function is a function of such types and locals, in the binary format, and of
// instructions without the last end.
func function(params, results, locals, instructions string) entry {
	return entry{params, results, locals, instructions}
}

// program is a module of functions that are exported by their numbers, and of a
// memory of two pages. Function n has type n.
func program(entries ...entry) []byte { return programWith(nil, entries...) }

// programWith is a program with other sections too, by their ids. A type or an
// import shifts what the functions have as numbers.
func programWith(others map[byte][]byte, entries ...entry) []byte {
	var types, functions, exports, bodies [][]byte
	for i, e := range entries {
		types = append(types, []byte("\x60"+e.params+e.results))
		functions = append(functions, uleb(i))
		export := fmt.Sprint(i)
		exports = append(exports, append(append(uleb(len(export)), export...), append([]byte{KindFunction}, uleb(i)...)...))
		body := e.locals + e.instructions + "\x0b"
		bodies = append(bodies, append(uleb(len(body)), body...))
	}
	exports = append(exports, []byte("\x06memory\x02\x00"))
	own := map[byte][]byte{
		sectionType: vector(types...), sectionFunction: vector(functions...), sectionMemory: []byte("\x01\x00\x02"),
		sectionExport: vector(exports...), sectionCode: vector(bodies...),
	}
	var sections [][]byte
	for _, id := range []byte{sectionType, sectionImport, sectionFunction, sectionTable, sectionMemory, sectionGlobal,
		sectionExport, sectionStart, sectionElement, sectionDataCount, sectionCode, sectionData} {
		content, ok := others[id]
		if !ok {
			content, ok = own[id]
		}
		if ok {
			sections = append(sections, section(id, content))
		}
	}
	return module(sections...)
}
