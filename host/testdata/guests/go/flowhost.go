//go:build !extism

package main

import (
	"encoding/json"
	"runtime"
	"unsafe"
)

//go:wasmimport flowhost:task/v1 size
func size(field int32) int32

//go:wasmimport flowhost:task/v1 read
func read(field int32, ptr unsafe.Pointer, capacity int32) int32

//go:wasmimport flowhost:task/v1 output
func output(ptr unsafe.Pointer, length int32) int32

//go:wasmimport flowhost:task/v1 fail
func fail(ptr unsafe.Pointer, length int32) int32

//go:wasmimport flowhost:task/v1 log
func log(level int32, message unsafe.Pointer, messageLen int32, fields unsafe.Pointer, fieldsLen int32) int32

// take gives the call's input.
func take() []byte {
	buf := make([]byte, size(0))
	read(0, unsafe.Pointer(unsafe.SliceData(buf)), int32(len(buf)))
	return buf
}

// give sets the call's output.
func give(text []byte) { output(unsafe.Pointer(unsafe.SliceData(text)), int32(len(text))) }

// likely is an item like those of calls: decoders take shorter ways for zeros.
var likely = item{SKU: "KB-100", Quantity: 1, Price: 12.5}

// warmup does once what the JSON package does for each type at first, and leaves
// the heap collected and the allocator with room for objects of all sizes.
//
//go:wasmexport flowhost_warmup
func warmup() int32 {
	runtime.GC()
	for range 2 {
		text, err := json.Marshal(order{ID: "o-1000", Customer: "nobody", Items: []item{likely, likely, likely}, Total: 37.5})
		if err != nil {
			return 1
		}
		var o order
		if err := json.Unmarshal(text, &o); err != nil {
			return 2
		}
	}
	for size := 8; size <= 4096; size += max(8, size/8) {
		runtime.KeepAlive(make([]byte, size))
		runtime.KeepAlive(make([]*byte, size/8))
	}
	return 0
}
