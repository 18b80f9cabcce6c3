//go:build extism

package main

import "encoding/binary"

//go:wasmimport extism:host/env input_length
func inputLength() uint64

//go:wasmimport extism:host/env input_load_u8
func inputLoadU8(at uint64) uint32

//go:wasmimport extism:host/env input_load_u64
func inputLoadU64(at uint64) uint64

//go:wasmimport extism:host/env alloc
func alloc(length uint64) uint64

//go:wasmimport extism:host/env store_u8
func storeU8(at uint64, v uint32)

//go:wasmimport extism:host/env store_u64
func storeU64(at uint64, v uint64)

//go:wasmimport extism:host/env output_set
func outputSet(at, length uint64)

// take gives the call's input: 8 bytes for each call to the host, as Extism's own
// kits do it, then single ones.
func take() []byte {
	buf := make([]byte, inputLength())
	i := 0
	for ; i+8 <= len(buf); i += 8 {
		binary.LittleEndian.PutUint64(buf[i:], inputLoadU64(uint64(i)))
	}
	for ; i < len(buf); i++ {
		buf[i] = byte(inputLoadU8(uint64(i)))
	}
	return buf
}

// give sets the call's output.
func give(text []byte) {
	at := alloc(uint64(len(text)))
	i := 0
	for ; i+8 <= len(text); i += 8 {
		storeU64(at+uint64(i), binary.LittleEndian.Uint64(text[i:]))
	}
	for ; i < len(text); i++ {
		storeU8(at+uint64(i), uint32(text[i]))
	}
	outputSet(at, uint64(len(text)))
}
