// The race detector makes all that this file measures slower.

//go:build !race

package host

import (
	"context"
	"encoding/binary"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/flowhost/flowhost/run"
)

// worstMaking bounds the CPU time for which the host makes an instance without a
// look at the call: nothing can end it before. The slowest one that was found stays
// below half of it.
const worstMaking = 100 * time.Millisecond

// looks is a context that notes the longest CPU time between two looks at it.
type looks struct {
	context.Context
	t       *testing.T
	last    time.Duration
	longest time.Duration
}

func (l *looks) Err() error {
	l.note()
	return l.Context.Err()
}

func (l *looks) note() {
	now := threadTime(l.t)
	l.longest, l.last = max(l.longest, now-l.last), now
}

// heavy is a module of which an instance is much work for the host. It has a table of
// 65 536 elements and one function, run.
type heavy struct {
	pages                 int  // of memory
	segments, size, apart int  // of data: how many, and the bytes of each and from each to the next one
	first                 int  // where the first one begins
	named                 bool // code names them
	active, each          int  // segments of elements, and the elements of each
	globals               int  // with references to functions
	references            int  // instructions that refer to functions, of one function each
}

func (m heavy) bytes() []byte {
	section := func(id byte, content []byte) []byte {
		return slices.Concat([]byte{id}, binary.AppendUvarint(nil, uint64(len(content))), content)
	}
	vector := func(n int, entry func(i int) string) []byte {
		content := binary.AppendUvarint(nil, uint64(n))
		for i := range n {
			content = append(content, entry(i)...)
		}
		return content
	}
	var refer strings.Builder
	for f := range m.references {
		refer.WriteString("\xd2" + string(binary.AppendUvarint(nil, uint64(f))) + "\x1a")
	}
	if m.named {
		refer.WriteString("\xfc\x09\x00") // data.drop
	}
	bodies := []string{refer.String() + "\x41\x00\x0b"}
	for range max(m.references-1, 0) {
		bodies = append(bodies, "\x41\x00\x0b")
	}
	data := strings.Repeat("x", m.size)
	indices := string(vector(m.each, func(int) string { return "\x00" }))
	declared := vector(1, func(int) string {
		return "\x03\x00" + string(vector(max(m.references, 1), func(f int) string { return string(binary.AppendUvarint(nil, uint64(f))) }))
	})
	elements := vector(m.active, func(int) string { return "\x00\x41\x00\x0b" + indices })
	if m.active == 0 {
		elements = declared
	}
	file := slices.Concat([]byte("\x00asm\x01\x00\x00\x00\x01\x05\x01\x60\x00\x01\x7f"),
		section(3, vector(len(bodies), func(int) string { return "\x00" })),
		section(4, []byte("\x01\x70\x00\x80\x80\x04")),
		section(5, slices.Concat([]byte{1, 0}, binary.AppendUvarint(nil, uint64(max(m.pages, 1))))),
		section(6, vector(m.globals, func(int) string { return "\x70\x00\xd2\x00\x0b" })),
		section(7, []byte("\x02\x03run\x00\x00\x06memory\x02\x00")),
		section(9, elements))
	if m.named {
		file = append(file, section(12, binary.AppendUvarint(nil, uint64(m.segments)))...)
	}
	file = append(file, section(10, vector(len(bodies), func(i int) string {
		return string(binary.AppendUvarint(nil, uint64(len(bodies[i])+1))) + "\x00" + bodies[i]
	}))...)
	return append(file, section(11, vector(m.segments, func(i int) string {
		return "\x00\x41" + string(leb(m.first+i*m.apart)) + "\x0b" + string(binary.AppendUvarint(nil, uint64(m.size))) + data
	}))...)
}

// TestMakingInstancesIsShort is not parallel: it measures what a thread does.
func TestMakingInstancesIsShort(t *testing.T) {
	const mebi = 1 << 20
	for name, m := range map[string]heavy{
		"nothing":      {},
		"one segment":  {pages: 1 << 10, segments: 1, size: 63 * mebi},
		"one, named":   {pages: 1 << 10, segments: 1, size: 63 * mebi, named: true},
		"scattered":    {pages: 1 << 14, segments: 250_000, size: 1, apart: 4096},
		"across pages": {pages: 1 << 14, first: 4095, segments: 125_000, size: 2, apart: 2 * 4096},
		"close":        {pages: 1 << 10, segments: 250_000, size: 1, apart: 128},
		"too far":      {pages: 1 << 10, segments: 250_000, size: 1, apart: 4096},
		"elements":     {active: 2, each: 50_000},
		"few elements": {active: 10_000, each: 10},
		"globals":      {globals: 10_000},
		"references":   {references: 2_000},
		"all": {pages: 1 << 14, segments: 250_000, size: 4, apart: 536, named: true,
			active: 2, each: 50_000, globals: 10_000},
	} {
		t.Run(name, func(t *testing.T) {
			h, err := New(t.Context(), Config{Memory: 4 << 30, CompileCommand: []string{os.Args[0], CompileArgument}})
			if err != nil {
				t.Fatal(err)
			}
			defer h.Close(t.Context())
			prepared, err := h.moduleOf(t.Context(), m.bytes())
			if err != nil || prepared.fault != nil {
				t.Fatal(err, prepared)
			}
			limits := h.tuning.Load().Limits
			limits.Memory = 1 << 30
			prepared.image.limits.Memory = 1 << 30
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			err = h.calls.call(t.Context(), prepared.image, limits, func(l *lease) {
				inv := newInvocation(&run.Call{}, ABIFlowhost, "run", limits)
				inv.lease = l
				// What else the machine does only adds to a figure (a page of memory is dearer
				// to get when it is short), so that the least of some is the one to judge.
				least := time.Duration(math.MaxInt64)
				for range 4 {
					linear := prepared.image.newLinear(l, limits.Memory)
					ctx := &looks{Context: t.Context(), t: t, last: threadTime(t)}
					made, err := prepared.image.empty(ctx, linear)
					if err == nil {
						err = prepared.image.data.Lay(ctx, linear.Bytes())
					}
					ctx.note()
					if fits := name != "too far"; (err == nil) != fits {
						t.Fatal(err)
					}
					if made != nil {
						made.close()
					} else {
						_ = linear.Close()
					}
					if least = min(least, ctx.longest); least <= worstMaking {
						t.Logf("%v without a look at the call", least)
						return
					}
				}
				t.Errorf("making an instance takes %v of a processor without a look at the call", least)
			})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

// threadTime is the CPU time of the thread so far.
func threadTime(t *testing.T) time.Duration {
	t.Helper()
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_THREAD, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
