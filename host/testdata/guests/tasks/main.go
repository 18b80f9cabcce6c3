// Command tasks is a reactor whose functions are its exports. Each of them does
// one thing that the host must cope with.
package main

import (
	"crypto/rand"
	"encoding/hex"
	"os"
	"strconv"
	"strings"
	"time"
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

//go:wasmimport flowhost:task/v1 time_left
func timeLeft() int64

//go:wasmimport flowhost:task/v1 should_stop
func shouldStop() int32

func main() {}

func field(f int32) string {
	buf := make([]byte, size(f)+1)
	return string(buf[:read(f, unsafe.Pointer(&buf[0]), int32(len(buf)))])
}

func give(s string) int32 { return output(unsafe.Pointer(unsafe.StringData(s)), int32(len(s))) }

func number() int {
	n, _ := strconv.Atoi(field(0))
	return n
}

//go:wasmexport echo
func echo() int32 {
	return give(`{"input":` + field(0) + `,"config":` + field(1) + `,"function":"` + field(2) + `","identity":` + field(3) + `}`)
}

var calls int

//go:wasmexport counter
func counter() int32 {
	calls++
	return give(strconv.Itoa(calls))
}

//go:wasmexport counter_then_panic
func counterThenPanic() int32 {
	calls++
	panic("broke at " + strconv.Itoa(calls))
}

// fails says the failure that its input is.
//
//go:wasmexport fails
func fails() int32 {
	text := field(0)
	return -fail(unsafe.Pointer(unsafe.StringData(text)), int32(len(text)))
}

func failWith(text string) { fail(unsafe.Pointer(unsafe.StringData(text)), int32(len(text))) }

//go:wasmexport fails_then_panics
func failsThenPanics() int32 {
	failWith(`{"code":"said","message":"said before"}`)
	panic("boom")
}

// changes its mind about its output and its failure, and fails only when its
// input is not 0.
//
//go:wasmexport changes
func changes() int32 {
	give(`"first"`)
	give(`"second"`)
	if number() != 0 {
		failWith(`{"code":"first","message":"1"}`)
		failWith(`{"code":"second","message":"2"}`)
	}
	return 0
}

//go:wasmexport status
func status() int32 { return int32(number()) }

//go:wasmexport nothing
func nothing() int32 { return 0 }

// raw gives the string that its input is, without the quotes, as its output.
//
//go:wasmexport raw
func raw() int32 {
	give(strings.Trim(field(0), `"`))
	return 0
}

// large gives an output of so many bytes and then, when the host takes it not,
// what the host said.
//
//go:wasmexport large
func large() int32 {
	give(`"` + strings.Repeat("x", number()-2) + `"`)
	return 0
}

//go:wasmexport large_then_fails
func largeThenFails() int32 {
	large()
	failWith(`{"code":"output_size","message":"too much"}`)
	return 1
}

// gives_up sees that its time is up and reports that it failed.
//
//go:wasmexport gives_up
func givesUp() int32 {
	for timeLeft() > 0 {
	}
	failWith(`{"message":"out of time"}`)
	return 1
}

//go:wasmexport recovers
func recovers() int32 {
	refused := give(`"` + strings.Repeat("x", number()) + `"`)
	return give(strconv.Itoa(int(refused)))
}

//go:wasmexport panics
func panics() int32 {
	os.Stderr.WriteString("about to break\n")
	panic("boom")
}

//go:wasmexport exits
func exits() int32 {
	os.Stderr.WriteString("cannot go on\n")
	os.Exit(number())
	return 0
}

//go:wasmexport nil_pointer
func nilPointer() int32 {
	var p *[1]int32
	return p[number()]
}

//go:wasmexport loops
func loops() int32 {
	n := number()
	for {
		n++
		if n == -1 {
			return int32(n)
		}
	}
}

//go:wasmexport sleeps
func sleeps() int32 {
	begin := time.Now()
	time.Sleep(time.Duration(number()) * time.Millisecond)
	return give(strconv.Itoa(int(time.Since(begin).Milliseconds())))
}

var hoard [][]byte

//go:wasmexport hoards
func hoards() int32 {
	for range number() {
		block := make([]byte, 1<<20)
		block[0] = 1
		hoard = append(hoard, block)
	}
	return give(strconv.Itoa(len(hoard)))
}

// logs writes one line of each level, with fields.
//
//go:wasmexport logs
func logs() int32 {
	for level := range int32(4) {
		message, fields := "level "+strconv.Itoa(int(level)), `{"n":`+strconv.Itoa(int(level))+`}`
		log(level, unsafe.Pointer(unsafe.StringData(message)), int32(len(message)), unsafe.Pointer(unsafe.StringData(fields)), int32(len(fields)))
	}
	os.Stdout.WriteString("on stdout\n")
	os.Stderr.WriteString("on stderr")
	return 0
}

//go:wasmexport floods
func floods() int32 {
	for i := range number() {
		message := "line " + strconv.Itoa(i)
		log(1, unsafe.Pointer(unsafe.StringData(message)), int32(len(message)), nil, 0)
	}
	return 0
}

//go:wasmexport world
func world() int32 {
	random := make([]byte, 16)
	rand.Read(random)
	var order strings.Builder
	for k := range map[string]int{"a": 1, "b": 2, "c": 3, "d": 4, "e": 5} {
		order.WriteString(k)
	}
	begin := time.Now()
	return give(`{"random":"` + hex.EncodeToString(random) + `","order":"` + order.String() +
		`","now":"` + begin.UTC().Format(time.RFC3339) + `","took":` + strconv.FormatInt(int64(time.Since(begin)), 10) +
		`,"env":` + strconv.Itoa(len(os.Environ())) + `,"args":` + strconv.Itoa(len(os.Args)) + `}`)
}

// files tries to open what its input names and gives the error.
//
//go:wasmexport files
func files() int32 {
	_, err := os.ReadFile(strings.Trim(field(0), `"`))
	return give(strconv.Quote(err.Error()))
}

// asks gives what the host answers to requests that are wrong.
//
//go:wasmexport asks
func asks() int32 {
	word, array := "word", "[]"
	text := unsafe.Pointer(unsafe.StringData(word))
	answers := []int32{
		size(9),
		size(-1),
		read(9, text, 4),
		read(3, text, 4),
		read(0, unsafe.Pointer(^uintptr(0)), 1<<30),
		output(unsafe.Pointer(^uintptr(0)), 4),
		output(text, -1),
		fail(text, 4),
		fail(unsafe.Pointer(^uintptr(0)), 4),
		log(1, unsafe.Pointer(^uintptr(0)), 4, nil, 0),
		log(1, text, 4, unsafe.Pointer(unsafe.StringData(array)), 2),
		log(1, text, 4, unsafe.Pointer(^uintptr(0)), 9),
		log(1, text, 4, text, -1),
		shouldStop(),
	}
	var list strings.Builder
	for _, answer := range answers {
		list.WriteString("," + strconv.Itoa(int(answer)))
	}
	return give("[" + list.String()[1:] + "]")
}

//go:wasmexport time_left
func left() int32 { return give(strconv.FormatInt(timeLeft(), 10)) }
