package hostile

import (
	"encoding/binary"
	"strings"
)

var (
	fdWrite   = imported{"wasi_snapshot_preview1", "fd_write", signature{[]byte{i32, i32, i32, i32}, []byte{i32}}}
	procExit  = imported{"wasi_snapshot_preview1", "proc_exit", signature{params: []byte{i32}}}
	setOutput = imported{"flowhost:task/v1", "output", signature{[]byte{i32, i32}, []byte{i32}}}
	setFail   = imported{"flowhost:task/v1", "fail", signature{[]byte{i32, i32}, []byte{i32}}}
	writeLog  = imported{"flowhost:task/v1", "log", signature{[]byte{i32, i32, i32, i32, i32}, []byte{i32}}}
)

// floods is guests that say more than anybody wants to hear.
func floods() []attack {
	return []attack{
		{name: "flood/stdout", what: "lines on stdout without an end", want: timesOut, module: writes("run", 1, lines)},
		{name: "flood/stdout without lines", what: "one line without an end", want: timesOut, module: writes("run", 1, "xxxxxxxx")},
		{name: "flood/empty lines", what: "nothing but line ends", want: timesOut, module: writes("run", 1, "\n\n\n\n\n\n\n\n")},
		{name: "flood/no text", what: "bytes that are no text", want: timesOut, module: writes("run", 1, "\xff\xfe\x00\x80\xff\n\xff\xff")},
		{name: "flood/stderr", what: "lines on stderr without an end", want: timesOut, module: writes("run", 2, lines)},
		{name: "flood/command's stdout", what: "output without an end", want: "rejected output_size", module: writes("_start", 1, lines)},
		{name: "flood/command's stderr", what: "a command's stderr without an end", want: timesOut, module: writes("_start", 2, lines)},
		{name: "flood/one write of terabytes", what: "a million buffers of 8 MiB in one call", want: timesOut + "|" + succeeds, module: writesTerabytes("run", 2)},
		{name: "flood/one write of output", what: "a million buffers of 8 MiB as output", want: "rejected output_size", module: writesTerabytes("_start", 1)},
		{name: "flood/empty buffers", what: "a million buffers of nothing, again and again", want: timesOut, module: writesNothing},
		{name: "flood/log", what: "log lines without an end", want: timesOut, module: says(writeLog, seq(number(1), number(0), number(1<<20), number(0), number(0)))},
		{name: "flood/log fields", what: "log lines with fields that are no JSON", want: timesOut,
			module: says(writeLog, seq(number(1), number(0), number(10), number(0), number(1<<20)))},
		{name: "flood/output", what: "the largest output that is allowed, again and again", want: timesOut,
			module: says(setOutput, seq(number(0), number(1<<20)))},
		{name: "flood/failure", what: "a failure of deeply nested JSON, again and again", want: timesOut,
			module: says(setFail, seq(number(0), number(1<<20)))},
		{name: "output/too large", what: "an output of a byte over the limit", want: "rejected output_size",
			module: saysOnce(setOutput, seq(number(0), number(1<<20+1)), 17)},
		{name: "output/4 GiB", what: "an output larger than memory", want: "rejected output_size",
			module: saysOnce(setOutput, seq(number(0), number(-1)), 1)},
		{name: "output/no JSON", what: "an output that is not what it should be", want: "rejected output_format",
			module: saysOnce(setOutput, seq(number(0), number(1<<20)), 17)},
		{name: "output/nested", what: "a value of half a million arrays in each other", want: "rejected output_format",
			module: func() []byte {
				g := guest{imports: []imported{setOutput}, pages: 17, data: []code{at(0, strings.Repeat("[", 1<<19)+strings.Repeat("]", 1<<19))}}
				g.functions = []function{{export: "run", kind: task, body: seq(number(0), number(1<<20), call(0), drop, number(0))}}
				return g.bytes()
			}},
	}
}

const lines = "a line\nb"

// writes calls fd_write without an end, 8 KiB of the text at a time.
func writes(export string, fd int, text string) func() []byte {
	kind := task
	if export == "_start" {
		kind = nothing
	}
	return guest{
		imports: []imported{fdWrite},
		data:    []code{at(0, words(64, 8<<10)), at(64, strings.Repeat(text, 1<<10))},
		functions: []function{{export: export, kind: kind,
			body: forever(number(fd), number(0), number(1), number(32), call(0), drop)}},
	}.bytes
}

// words is numbers as they lie in memory.
func words(numbers ...uint32) string {
	var b []byte
	for _, n := range numbers {
		b = binary.LittleEndian.AppendUint32(b, n)
	}
	return string(b)
}

// writesTerabytes writes its upper half of memory a million times in one call.
func writesTerabytes(export string, fd int) func() []byte {
	const half = 8 << 20
	kind, last := task, number(0)
	if export == "_start" {
		kind, last = nothing, nil
	}
	return guest{
		imports: []imported{fdWrite}, pages: 2 * half / pageSize,
		functions: []function{{export: export, kind: kind, locals: code{1, 1, i32}, body: seq(
			upTo(0, half, 8, get(0), number(half), store, get(0), number(4), add, number(half), store),
			number(fd), number(0), number(half/8), number(half), call(0), drop, last)}},
	}.bytes
}

func writesNothing() []byte {
	return guest{
		imports: []imported{fdWrite}, pages: 129,
		functions: []function{{export: "run", kind: task,
			body: forever(number(2), number(0), number(1<<20), number(8<<20), call(0), drop)}},
	}.bytes()
}

// says calls an import without an end. Memory is full of brackets.
func says(what imported, arguments code) func() []byte {
	return guest{
		imports: []imported{what}, pages: 17,
		functions: []function{{export: "run", kind: task, body: seq(
			number(0), number('['), number(1<<20), memoryFill, forever(arguments, call(0), drop))}},
	}.bytes
}

// saysOnce calls an import and ends well.
func saysOnce(what imported, arguments code, pages int) func() []byte {
	return guest{
		imports: []imported{what}, pages: pages,
		functions: []function{{export: "run", kind: task, body: seq(arguments, call(0), drop, number(0))}},
	}.bytes
}
