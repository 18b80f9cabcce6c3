package wasm

import (
	"bytes"
	"context"
	"math/rand/v2"
	"testing"

	"github.com/tetratelabs/wazero"
)

// memoryOf is what a module's memory holds when it begins.
func memoryOf(t *testing.T, binary []byte) []byte {
	t.Helper()
	ctx := context.Background()
	runtime := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter())
	t.Cleanup(func() { runtime.Close(ctx) })
	if _, err := runtime.NewHostModuleBuilder(SandboxModule).NewFunctionBuilder().
		WithFunc(func(uint32) {}).Export(ImportInterrupt).Instantiate(ctx); err != nil {
		t.Fatal(err)
	}
	instance, err := runtime.Instantiate(ctx, binary)
	if err != nil {
		t.Fatal(err)
	}
	content, _ := instance.Memory().Read(0, instance.Memory().Size())
	return bytes.Clone(content)
}

// active is an active data segment of memory 0.
func active(offset int, content []byte) []byte {
	var w writer
	w.uvarint(0)
	w.i32Const(int64(offset))
	w.bytes(opEnd)
	w.uvarint(len(content))
	w.bytes(content...)
	return w.out
}

func withData(segments ...[]byte) []byte {
	return module(section(sectionMemory, []byte("\x01\x00\x01")), section(sectionData, vector(segments...)))
}

func rewritten(t *testing.T, file []byte) []byte {
	t.Helper()
	m, err := Decode(file, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return m.Rewrite(RewriteOptions{}).Binary
}

// segmentsOf is how many data segments a rewritten module has.
func segmentsOf(t *testing.T, binary []byte) int {
	t.Helper()
	for r := (reader{module: binary, pos: headerSize, end: len(binary)}); r.left() > 0; {
		id, size := r.byte(), r.u32()
		if id == sectionData {
			return r.u32()
		}
		r.skip(size)
	}
	return 0
}

func TestDataSegmentsAreMerged(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		segments [][]byte
		want     int
	}{
		{"behind each other", [][]byte{active(100, []byte("ab")), active(102, []byte("cd")), active(104, nil)}, 1},
		{"a few zeros between", [][]byte{active(0, []byte("ab")), active(2+maxGap, []byte("cd"))}, 1},
		{"many zeros between", [][]byte{active(0, []byte("ab")), active(3+maxGap, []byte("cd"))}, 2},
		{"backwards", [][]byte{active(10, []byte("ab")), active(5, []byte("cd"))}, 2},
		{"over each other", [][]byte{active(10, []byte("abc")), active(11, []byte("x"))}, 2},
		{"written to before", [][]byte{active(4, []byte("Z")), active(100, []byte("ab")), active(0, []byte("ab")), active(6, []byte("cd"))}, 4},
		{"up to the end", [][]byte{active(65535, []byte("a")), active(65536, nil)}, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			plain := withData(tt.segments...)
			merged := rewritten(t, plain)
			if got := segmentsOf(t, merged); got != tt.want {
				t.Errorf("%d segments, want %d", got, tt.want)
			}
			if !bytes.Equal(memoryOf(t, merged), memoryOf(t, plain)) {
				t.Error("memory begins with something else")
			}
		})
	}
}

func TestDataSegmentsThatAreNumberedStay(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		instructions string
		want         int
	}{
		"memory.init": {"\x41\x00\x41\x00\x41\x00\xfc\x08\x01\x00", 2},
		"data.drop":   {"\xfc\x09\x00", 2},
		"neither":     {"\x41\x00\x41\x00\x41\x00\xfc\x0b\x00", 1},
	} {
		file := programWith(map[byte][]byte{
			sectionDataCount: []byte("\x02"), sectionData: vector(active(0, []byte("a")), active(1, []byte("b"))),
		}, function("\x00", "\x00", "\x00", tt.instructions))
		merged := rewritten(t, file)
		if got := segmentsOf(t, merged); got != tt.want {
			t.Errorf("%s: %d segments, want %d", name, got, tt.want)
		}
		if !bytes.Equal(memoryOf(t, merged), memoryOf(t, file)) {
			t.Errorf("%s: memory begins with something else", name)
		}
	}
}

func TestLargeDataSegmentsAreSplit(t *testing.T) {
	t.Parallel()
	content := make([]byte, 2*maxData+5)
	for i := range content {
		content[i] = byte(i>>16 + i)
	}
	file := module(section(sectionMemory, []byte("\x01\x00\x21")),
		section(sectionData, vector(active(7, content), active(7+maxData-1, []byte("over")))))
	split := rewritten(t, file)
	if got := segmentsOf(t, split); got != 4 {
		t.Errorf("%d segments", got)
	}
	if !bytes.Equal(memoryOf(t, split), memoryOf(t, file)) {
		t.Error("memory begins with something else")
	}
}

func TestMergingDataChangesNothing(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		var segments [][]byte
		at := 0
		for range random.IntN(30) {
			if random.IntN(8) == 0 {
				at = random.IntN(2000)
			}
			content := make([]byte, random.IntN(20))
			for i := range content {
				content[i] = byte(random.Uint32())
			}
			segments = append(segments, active(at, content))
			at += len(content) + random.IntN(2*maxGap)
		}
		plain := withData(segments...)
		if !bytes.Equal(memoryOf(t, rewritten(t, plain)), memoryOf(t, plain)) {
			t.Fatalf("memory begins with something else: %x", plain)
		}
	}
}
