// Command go is the Go guest of tests and benchmarks that compare languages. With
// the build tag extism it is a plugin of Extism instead.
package main

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

type order struct {
	ID       string  `json:"id"`
	Customer string  `json:"customer"`
	Items    []item  `json:"items"`
	Total    float64 `json:"total"`
}

type item struct {
	SKU      string  `json:"sku"`
	Quantity int     `json:"quantity"`
	Price    float64 `json:"price"`
}

func main() {}

//go:wasmexport nothing
func nothing() int32 { return 0 }

// echo reads an order and writes it again.
//
//go:wasmexport echo
func echo() int32 {
	var o order
	if err := json.Unmarshal(take(), &o); err != nil {
		return 1
	}
	text, err := json.Marshal(o)
	if err != nil {
		return 2
	}
	give(text)
	return 0
}

//go:wasmexport spin
func spin() int32 {
	for n := int32(1); ; n++ {
		if n == 0 {
			n++
		}
	}
}

// nap sleeps for as many milliseconds as its input says.
//
//go:wasmexport nap
func nap() int32 {
	ms, err := strconv.Atoi(strings.TrimSpace(string(take())))
	if err != nil {
		return 1
	}
	time.Sleep(time.Duration(ms) * time.Millisecond)
	return 0
}
