// Command json is a guest that encodes and decodes JSON, for benchmarks.
package main

import (
	"encoding/json"
	"fmt"
)

type order struct {
	ID       string             `json:"id"`
	Customer string             `json:"customer"`
	Lines    []line             `json:"lines"`
	Tags     map[string]float64 `json:"tags"`
}

type line struct {
	Item     string  `json:"item"`
	Quantity int     `json:"quantity"`
	Price    float64 `json:"price"`
}

var small, large = encode(3), encode(3000)

func encode(lines int) []byte {
	o := order{ID: "o-1", Customer: "Ada Lovelace", Tags: map[string]float64{"weight": 12.5, "volume": 0.25}}
	for i := range lines {
		o.Lines = append(o.Lines, line{Item: fmt.Sprintf("item %d of \"many\"", i), Quantity: i, Price: float64(i) * 1.25})
	}
	encoded, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	return encoded
}

func roundTrip(encoded []byte) int32 {
	var o order
	if err := json.Unmarshal(encoded, &o); err != nil {
		panic(err)
	}
	again, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	return int32(len(again))
}

//go:wasmexport small
func smallRoundTrip() int32 { return roundTrip(small) }

//go:wasmexport large
func largeRoundTrip() int32 { return roundTrip(large) }

func main() {}
