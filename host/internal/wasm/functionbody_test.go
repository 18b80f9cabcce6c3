package wasm

import (
	"fmt"
	"strings"
	"testing"
)

// TestInstructions has each instruction of WebAssembly 2.0 that has a form of
// its own. If too much or too little of one is read, the end is not where it
// should be: no immediate here is an end.
func TestInstructions(t *testing.T) {
	t.Parallel()
	const memarg = "\x02\x90\x01"
	instructions := []string{
		"\x00", "\x01", "\x0c\x00", "\x0d\x00", "\x0e\x01\x00\x00", "\x0e\x00\x00", "\x0f", "\x10\x00", "\x11\x00\x00",
		"\x02\x40\x0b", "\x03\x7f\x0b", "\x04\x40\x05\x0b", "\x02\x00\x0b", "\x02\x80\x00\x0b", "\x04\x70\x0b",
		"\x1a", "\x1b", "\x1c\x01\x7f", "\x20\x90\x01", "\x21\x00", "\x22\x00", "\x23\x00", "\x24\x00", "\x25\x00", "\x26\x00",
		"\x28" + memarg, "\x3e" + memarg, "\x3f\x00", "\x40\x00",
		"\x41\x7f", "\x41\x80\x80\x80\x80\x78", "\x42\x80\x80\x80\x80\x80\x80\x80\x80\x80\x7f", "\x431234", "\x4412345678",
		"\x45", "\x8b", "\xc4", "\xd0\x70", "\xd0\x6f", "\xd1",
		"\xfc\x00", "\xfc\x07", "\xfc\x87\x00", "\xfc\x08\x00\x00", "\xfc\x09\x00", "\xfc\x0a\x00\x00", "\xfc\x0b\x00", "\xfc\x0c\x00\x00",
		"\xfc\x0d\x00", "\xfc\x0e\x00\x00", "\xfc\x0f\x00", "\xfc\x10\x00", "\xfc\x11\x00",
		"\xfd\x00" + memarg, "\xfd\x0b" + memarg, "\xfd\x0c0123456789abcdef", "\xfd\x0d0123456789abcdef", "\xfd\x0e",
		"\xfd\x15\x01", "\xfd\x22\x01", "\xfd\x23", "\xfd\x53", "\xfd\x54" + memarg + "\x01", "\xfd\x5b" + memarg + "\x01",
		"\xfd\x5c" + memarg, "\xfd\x5d" + memarg, "\xfd\x5e", "\xfd\x7f", "\xfd\x80\x01", "\xfd\xff\x01",
	}
	for _, i := range instructions {
		if _, err := Decode(code("\x00", i+"\x0b"), Options{}); err != nil {
			t.Errorf("%x: %v", i, err)
		}
		for cut := range len(i) { // every byte of it is needed
			if _, err := Decode(code("\x00", i[:cut]), Options{}); err == nil {
				t.Errorf("%x was taken", i[:cut])
			}
		}
	}
}

func TestUnknownInstructions(t *testing.T) {
	t.Parallel()
	for _, i := range []string{
		"\x16", "\x17", "\x1d", "\x1e", "\x27", "\xc5", "\xcf", "\xd7", "\xfa", "\xff",
		"\xfc\x12", "\xfc\x80\x02", "\xfd\x9a\x01", "\xfd\xee\x01",
		"\x1c\x02\x7f\x7f", "\x28\x80\x01\x00", "\x41\x80\x80\x80\x80\x08", "\x41\x80\x80\x80\x80\x80\x00",
		"\xd0\x7f", "\x02\x41\x0b", "\x02\x7f",
	} {
		if _, err := Decode(code("\x00", i+"\x0b"), Options{}); err == nil {
			t.Errorf("%x was taken", i)
		}
	}
}

func TestVectorInstructionsOfTheSpecification(t *testing.T) {
	t.Parallel()
	known := 0
	for n := range 1 << 8 {
		if !isVectorGap(n) {
			known++
		}
	}
	if known != 236 {
		t.Errorf("%d, and the specification has 236", known)
	}
}

func TestSignedNumbers(t *testing.T) {
	t.Parallel()
	tests := []struct {
		bits  int
		bytes string
		want  string // "-" where it is refused
	}{
		{32, "\x00", "0"},
		{32, "\x7f", "-1"},
		{32, "\x40", "-64"},
		{32, "\xff\x00", "127"},
		{32, "\x80\x80\x80\x80\x78", "-2147483648"},
		{32, "\xff\xff\xff\xff\x07", "2147483647"},
		{32, "\xff\xff\xff\xff\x7f", "-1"},
		{32, "\xff\xff\xff\xff\x0f", "-"}, // the unused bits are not the sign
		{32, "\xff\xff\xff\xff\xff\x7f", "-"},
		{33, "\xff\xff\xff\xff\x0f", "4294967295"},
		{33, "\x80\x80\x80\x80\x70", "-4294967296"},
		{33, "\x80\x80\x80\x80\x20", "-"},
		{64, "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x7f", "-9223372036854775808"},
		{64, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x00", "9223372036854775807"},
		{64, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "-"},
		{64, "\x80", "-"},
	}
	for _, tt := range tests {
		r := reader{module: []byte(tt.bytes), end: len(tt.bytes)}
		got := fmt.Sprint(r.signed(tt.bits))
		if r.err != nil {
			got = "-"
		}
		if got != tt.want || r.left() != 0 {
			t.Errorf("%x as %d bits: %s with %d bytes left, want %s", tt.bytes, tt.bits, got, r.left(), tt.want)
		}
	}
}

func TestUnsignedNumbers(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"\x00": 0, "\x7f": 127, "\x80\x01": 128, "\xff\xff\xff\xff\x0f": 1<<32 - 1, "\x80\x80\x80\x80\x00": 0,
	} {
		r := reader{module: []byte(text), end: len(text)}
		if got := r.u32(); got != want || r.err != nil || r.left() != 0 {
			t.Errorf("%x: %d, %v", text, got, r.err)
		}
	}
}

func TestFirstFaultStays(t *testing.T) {
	t.Parallel()
	_, err := Decode(code("\x00", "\xfe\x00\x00"+strings.Repeat("\x16", 10)+"\x0b"), Options{})
	wantRefusal(t, err, "code", threads.name)
}
