package host

import (
	"bytes"
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flowhost/flowhost/run"
)

// wasmSection is a section of n times an entry, none without entries.
func wasmSection(id byte, n int, entry string) []byte {
	if n == 0 {
		return nil
	}
	content := append(binary.AppendUvarint(nil, uint64(n)), bytes.Repeat([]byte(entry), n)...)
	return append(binary.AppendUvarint([]byte{id}, uint64(len(content))), content...)
}

// parts is a module of one page of memory with so many of each; its function run
// has that body, () -> i32.
type parts struct {
	imports, functions, globals, tables, elements, data int
	element                                             string // an entry of one segment
	table                                               string // an entry
	body                                                string
}

func (p parts) bytes() []byte {
	body := p.body
	if body == "" {
		body = "\x41\x00"
	}
	bodies := append(binary.AppendUvarint(nil, uint64(1+p.functions)), binary.AppendUvarint(nil, uint64(len(body)+2))...)
	bodies = append(append(bodies, '\x00'), body+"\x0b"...)
	bodies = append(bodies, bytes.Repeat([]byte("\x02\x00\x0b"), p.functions)...)
	code := append(binary.AppendUvarint([]byte{10}, uint64(len(bodies))), bodies...)
	functions := append(binary.AppendUvarint(nil, uint64(1+p.functions)), append([]byte{0}, bytes.Repeat([]byte{1}, p.functions)...)...)
	run := binary.AppendUvarint(nil, uint64(p.imports))
	exports := slices.Concat([]byte("\x02\x03run\x00"), run, []byte("\x06memory\x02\x00"))
	var counted []byte
	if p.data > 0 {
		count := binary.AppendUvarint(nil, uint64(p.data))
		counted = append([]byte{12, byte(len(count))}, count...)
	}
	var elements []byte
	if p.elements > 0 {
		content := slices.Concat([]byte("\x01"), []byte(p.element), binary.AppendUvarint(nil, uint64(p.elements)), bytes.Repeat(run, p.elements))
		elements = append(binary.AppendUvarint([]byte{9}, uint64(len(content))), content...)
	}
	return slices.Concat([]byte("\x00asm\x01\x00\x00\x00"),
		[]byte("\x01\x08\x02\x60\x00\x01\x7f\x60\x00\x00"), wasmSection(2, p.imports, "\x16wasi_snapshot_preview1\x0bsched_yield\x00\x00"),
		append(binary.AppendUvarint([]byte{3}, uint64(len(functions))), functions...),
		wasmSection(4, p.tables, p.table), wasmSection(5, 1, "\x00\x01"),
		wasmSection(6, p.globals, "\x7e\x01\x42\x00\x0b"),
		append([]byte{7, byte(len(exports))}, exports...), elements, counted, code,
		wasmSection(11, p.data, "\x01\x01x"))
}

// heapInUse is what lives on the heap.
func heapInUse() int64 {
	runtime.GC()
	runtime.GC() // what finalizers kept
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// TestFootprintCoversInstances is not parallel: it measures the heap. An instance
// must not take more than a fifth beyond what a call is charged for it.
func TestFootprintCoversInstances(t *testing.T) {
	const instances = 10
	for name, p := range map[string]parts{
		"nothing":            {},
		"functions":          {functions: 50_000},
		"globals":            {globals: 9_000},
		"imports":            {imports: 9_000},
		"tables":             {tables: 8, table: "\x70\x00\x80\x40"},
		"elements":           {tables: 1, table: "\x70\x00\xe0\xd4\x03", elements: 60_000, element: "\x00\x41\x00\x0b"},
		"passive elements":   {elements: 100_000, element: "\x01\x00"},
		"declared elements":  {elements: 100_000, element: "\x03\x00"},
		"data segments":      {data: 100_000, body: "\xfc\x09\x00\x41\x00"},
		"unnamed data":       {data: 100_000},
		"table.grow":         {tables: 1, table: "\x70\x00\x00", body: "\xd0\x70\x41\xc0\x84\x3d\xfc\x0f\x00\x1a\x41\x00"},
		"table.grow by ones": {tables: 1, table: "\x70\x00\x00", body: "\x03\x40\xd0\x70\x41\x01\xfc\x0f\x00\x41\x00\x4e\x0d\x00\x0b\x41\x00"},
	} {
		t.Run(name, func(t *testing.T) {
			h, err := New(t.Context(), Config{Memory: 8 << 30, Instances: 4 * instances, CompileCommand: []string{os.Args[0], CompileArgument}})
			if err != nil {
				t.Fatal(err)
			}
			defer h.Close(t.Context())
			m, err := h.moduleOf(t.Context(), p.bytes())
			if err != nil || m.fault != nil {
				t.Fatal(err, m)
			}
			if err := h.ready(t.Context(), m.image); err != nil {
				t.Fatal(err)
			}
			limits := h.tuning.Load().Limits
			var charged, before, taken int64
			var hold func(n int)
			hold = func(n int) {
				if n == 0 {
					taken = heapInUse() - before
					return
				}
				err := h.calls.call(t.Context(), m.image, limits, func(l *lease) {
					inv := newInvocation(&run.Call{}, ABIFlowhost, "run", limits)
					inv.lease = l
					made, err := m.image.instance(t.Context(), l, inv)
					if err != nil {
						t.Fatal(err)
					}
					defer made.close()
					if _, err := made.call(t.Context(), inv, "run"); err != nil {
						t.Error(err)
					}
					charged += l.bytes - limits.Output - limits.Log - m.image.need()
					hold(n - 1)
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			hold(1)
			charged, before = 0, heapInUse()
			hold(instances)
			t.Logf("%9d bytes are taken and %9d are charged", taken/instances, charged/instances)
			if taken > charged*6/5 {
				t.Errorf("an instance takes %d bytes and %d are charged", taken/instances, charged/instances)
			}
		})
	}
}

// deepStack is a module that calls a function within itself as often as it says,
// where each call keeps 200 values on the native stack. At the bottom it runs for
// ever.
func deepStack(calls int) []byte {
	const load, add, values = "\x41\x00\x28\x02\x00", "\x6a", 200
	f := "\x00\x20\x00\x45\x04\x40\x03\x40\x0c\x00\x0b\x0b" + "\x41\x00" +
		strings.Repeat(load, values) + "\x20\x00\x41\x01\x6b\x10\x01" + strings.Repeat(add, values-1) + "\x36\x02\x00\x0b"
	run := "\x00\x41" + string(leb(calls)) + "\x10\x01\x41\x00\x0b"
	bodies := slices.Concat([]byte("\x02"), leb(len(run)), []byte(run), leb(len(f)), []byte(f))
	return slices.Concat([]byte("\x00asm\x01\x00\x00\x00\x01\x09\x02\x60\x00\x01\x7f\x60\x01\x7f\x00\x03\x03\x02\x00\x01"),
		wasmSection(5, 1, "\x00\x01"), []byte("\x07\x10\x02\x03run\x00\x00\x06memory\x02\x00"),
		[]byte{10}, leb(len(bodies)), bodies)
}

// leb is a number in LEB128 that is positive, signed or not.
func leb(n int) []byte {
	b := binary.AppendUvarint(nil, uint64(n))
	if b[len(b)-1]&0x40 != 0 {
		b[len(b)-1] |= 0x80
		b = append(b, 0)
	}
	return b
}

// TestDeepStackIsCharged is not parallel: it measures the heap.
func TestDeepStackIsCharged(t *testing.T) {
	const calls = 9_000
	for _, memory := range []int64{1 << 30, 12 << 20} {
		h, err := New(t.Context(), Config{Memory: memory})
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "deep.wasm")
		if err := os.WriteFile(path, deepStack(calls), 0o600); err != nil {
			t.Fatal(err)
		}
		signature, err := h.Signature(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		before := heapInUse()
		ctx, cancel := context.WithCancelCause(t.Context())
		ended := make(chan run.Result, 1)
		go func() {
			result, _ := h.Invoke(ctx, run.Call{Module: signature.Digest})
			ended <- result
		}()
		if memory < 1<<30 {
			if r := <-ended; r.Failure == nil || r.Failure.Code != run.CodeMemory {
				t.Errorf("in %d bytes: %+v", memory, r)
			}
		} else {
			for h.Stats().Memory < 2*calls*200*4 {
				select {
				case r := <-ended:
					t.Fatalf("it ended: %+v %v", r, r.Failure)
				case <-time.After(time.Millisecond):
				}
			}
			taken, charged := heapInUse()-before, h.Stats().Memory
			t.Logf("%d bytes are taken and %d are charged", taken, charged)
			if taken > charged {
				t.Errorf("%d bytes are taken and %d are charged", taken, charged)
			}
			cancel(run.ErrCanceled)
			<-ended
		}
		cancel(nil)
		if left := h.Stats().Memory; left > 1<<20 {
			t.Errorf("%d bytes are still charged", left)
		}
		h.Close(t.Context())
	}
}
