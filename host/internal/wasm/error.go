package wasm

import "fmt"

// Error reports why a module is refused.
type Error struct {
	Section string // "the code section"; empty where the file itself is wrong
	Offset  int    // of the byte in the file where that was found
	Limit   int    // that is exceeded; 0 when it is something else
	Reason  string
	Hint    string // what the module's author can do about it
}

// Error gives section, offset and reason in one line, without the hint.
func (e *Error) Error() string {
	if e.Section == "" {
		return e.Reason
	}
	return fmt.Sprintf("%s, byte %#x: %s", e.Section, e.Offset, e.Reason)
}

const hintDamaged = "the file may have been cut short or damaged: build or copy it again"

// feature is a proposal that came after WebAssembly 2.0.
type feature struct{ name, hint string }

var (
	exceptions = feature{"exception handling", "build it without: -fno-exceptions for C++, panic=abort for Rust"}
	tailCalls  = feature{"tail calls", "build it without: -mno-tail-call for clang, -C target-feature=-tail-call for Rust"}
	threads    = feature{"threads", "build it without shared memory and atomics: no -pthread, -mno-atomics"}
	memory64   = feature{"64-bit memory", "build it for wasm32"}
	memories   = feature{"several memories", "link it with one memory: -mno-multimemory"}
	pageSizes  = feature{"custom page sizes", "leave the page size of 64 KiB"}
	relaxed    = feature{"relaxed SIMD", "build it without: -mno-relaxed-simd"}
	extended   = feature{"extended constant expressions", "build it without: -mno-extended-const"}
	references = feature{"typed function references", "compile it for WebAssembly 2.0, with linear memory"}
	collector  = feature{"garbage-collected types", "compile it for WebAssembly 2.0, with linear memory"}
)
