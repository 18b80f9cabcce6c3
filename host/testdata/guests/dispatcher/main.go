// Command dispatcher is a reactor that serves its functions through one export
// and describes them through another.
package main

import (
	"unsafe"
)

//go:wasmimport flowhost:task/v1 size
func size(field int32) int32

//go:wasmimport flowhost:task/v1 read
func read(field int32, ptr unsafe.Pointer, capacity int32) int32

//go:wasmimport flowhost:task/v1 output
func output(ptr unsafe.Pointer, length int32) int32

func main() {}

func give(s string) int32 { return output(unsafe.Pointer(unsafe.StringData(s)), int32(len(s))) }

//go:wasmexport flowhost_manifest
func manifest() int32 {
	return give(`{"abi":1,"name":"greetings","version":"1.2.3","functions":[` +
		`{"name":"hello","description":"says hello","input":{"type":"string"}},{"name":"bye"},{"name":"plain"}]}`)
}

//go:wasmexport flowhost_invoke
func invoke() int32 {
	buf := make([]byte, size(2))
	read(2, unsafe.Pointer(&buf[0]), int32(len(buf)))
	return give(`"dispatched ` + string(buf) + `"`)
}

//go:wasmexport plain
func plain() int32 { return give(`"plain"`) }

//go:wasmexport unlisted
func unlisted() int32 { return give(`"unlisted"`) }
