//go:build !extism

package main

import (
	"encoding/json"
	"math"
	"os"
	"runtime"
	"strconv"
	"strings"
	"unsafe"
)

// memoryPages gives the size of the linear memory in pages of 64 KiB.
func memoryPages() int32

// wreck writes over all memory and traps.
func wreck()

// maxSums is how many pages of memory are told apart.
const maxSums = 128

// State of each kind.
var (
	inData  = 41
	inBSS   int
	half    = 0.5
	words   = map[string]int{"one": 1}
	list    *node
	pattern [16 * 4096]byte
	table   = [64]uint64{0: 1, 63: 1}
	leaked  = make(chan int)
	call    = func(n int) int { return n }
	sums    [maxSums]uint64
)

type node struct {
	next  *node
	value int
}

// hash goes over memory in steps that are bijections of the sum: no single change
// goes unseen. The Go runtime keeps the first bytes free, so that they can be nil.
func hash(sum uint64, from, to uintptr) uint64 {
	for p := max(from, 8); p < to; p += 8 {
		sum = (sum ^ *(*uint64)(unsafe.Add(nil, p))) * 0x9e3779b97f4a7c15
		sum ^= sum >> 29
	}
	return sum
}

// look fills in sums, which run on from page to page: the first that differs is
// where. It gives the number of pages.
func look() int32 {
	pages := memoryPages()
	at := uintptr(unsafe.Pointer(&sums))
	sum := hash(1, at, at+unsafe.Sizeof(sums))
	for i := range uintptr(pages) {
		sum = hash(sum, i<<16, (i+1)<<16)
		sums[min(i, maxSums-1)] = sum
	}
	return pages
}

type report struct {
	Memory     []string `json:"memory"`
	Pages      int32    `json:"pages"`
	Data       int      `json:"data"`
	BSS        int      `json:"bss"`
	Half       uint64   `json:"f64"`
	Words      int      `json:"words"`
	Heap       int      `json:"heap"`
	Call       int      `json:"call"`
	Goroutines int      `json:"goroutines"`
}

func tell(pages int32) []byte {
	r := report{
		Pages: pages, Data: inData, BSS: inBSS, Half: math.Float64bits(half), Words: len(words),
		Call: call(1), Goroutines: runtime.NumGoroutine(),
	}
	for _, sum := range sums[:min(pages, maxSums)] {
		r.Memory = append(r.Memory, strconv.FormatUint(sum, 16))
	}
	for n := list; n != nil; n = n.next {
		r.Heap += n.value
	}
	text, err := json.Marshal(r)
	if err != nil {
		panic(err)
	}
	return text
}

func change(amount int) {
	inData += amount
	inBSS += amount
	half += float64(amount)
	call = func(n int) int { return n + amount }
	for i := range amount%64 + 1 {
		list = &node{list, amount}
		words[strconv.Itoa(amount+i)] = i
	}
	for i := amount % 512; i < len(pattern); i += 512 {
		pattern[i] += byte(amount) | 1
	}
	for i := range table {
		table[i] += uint64(amount)
	}
	for range amount % 3 {
		go func() { leaked <- 1 }()
	}
	runtime.Gosched()
}

// grow writes to new memory and gives 3 if that was not zero before.
func grow(amount int) int32 {
	var found uint64
	block := make([]uint64, (1+amount%16)<<17) // MiB; the runtime relies on zeros
	for i := range block {
		found |= block[i]
		block[i] = uint64(amount) | 1
	}
	list = &node{list, int(block[amount%len(block)])}
	if found != 0 {
		return 3
	}
	return 0
}

//go:noinline
func deep(n int) int {
	if n == 0 {
		return 0
	}
	return deep(n-1) + 1
}

// mutate's input is a word and a number: how to end, and by how much to change
// everything before. It logs what it saw when it began, and gives it as output.
//
//go:wasmexport mutate
func mutate() int32 {
	pages := look()
	seen, title := tell(pages), "world"
	log(1, unsafe.Pointer(unsafe.StringData(title)), int32(len(title)), unsafe.Pointer(unsafe.SliceData(seen)), int32(len(seen)))
	give(seen)

	end, digits, _ := strings.Cut(strings.Trim(string(take()), `"`), " ")
	amount, err := strconv.Atoi(digits)
	if err != nil {
		return 2
	}
	change(amount)
	switch end {
	case "return":
	case "trap":
		panic("asked to")
	case "exit":
		os.Exit(amount % 3)
	case "loop":
		for {
			inBSS++
		}
	case "grow":
		return grow(amount)
	case "fail":
		text := `{"code":"asked","message":"to fail"}`
		fail(unsafe.Pointer(unsafe.StringData(text)), int32(len(text)))
		return 1
	case "deep":
		inBSS = deep(5000)
	case "wreck":
		wreck()
	default:
		return 2
	}
	return 0
}
