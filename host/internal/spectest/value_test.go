package spectest

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// value is an argument, or a pattern that a result must match.
type value struct {
	Type     string          `json:"type"`
	LaneType string          `json:"lane_type"` // of a v128
	Value    json.RawMessage `json:"value"`     // one string, one for each lane, or nothing: any value will do
}

// width is the bits of the value, or of one of its lanes.
func (v value) width() int {
	kind := v.Type
	if kind == "v128" {
		kind = v.LaneType
	}
	switch kind {
	case "i8":
		return 8
	case "i16":
		return 16
	case "i32", "f32":
		return 32
	}
	return 64 // i64, f64, references
}

// words is how many words the value takes among wazero's arguments.
func (v value) words() int {
	if v.Type == "v128" {
		return 2
	}
	return 1
}

// lanes is the texts of the lanes; a value without lanes is one.
func (v value) lanes() ([]string, error) {
	if v.Type != "v128" {
		var text string
		err := json.Unmarshal(v.Value, &text)
		return []string{text}, err
	}
	var texts []string
	err := json.Unmarshal(v.Value, &texts)
	if err == nil && len(texts)*v.width() != 128 {
		err = fmt.Errorf("%d lanes of %d bits", len(texts), v.width())
	}
	return texts, err
}

// bits is the number that a text represents. The null reference is 0 in wazero,
// so the number of an external reference is one more.
func (v value) bits(text string) (uint64, error) {
	switch {
	case text == "null":
		return 0, nil
	case v.Type == "externref":
		n, err := strconv.ParseUint(text, 10, 32)
		return n + 1, err
	}
	return strconv.ParseUint(text, 10, v.width())
}

// encode appends the value to arguments of a call.
func (v value) encode(arguments []uint64) ([]uint64, error) {
	texts, err := v.lanes()
	if err != nil {
		return nil, err
	}
	words := make([]uint64, v.words())
	for i, text := range texts {
		bits, err := v.bits(text)
		if err != nil {
			return nil, err
		}
		at := i * v.width()
		words[at/64] |= bits << (at % 64)
	}
	return append(arguments, words...), nil
}

// matches compares a result with the pattern.
func (v value) matches(words []uint64) bool {
	if v.Value == nil {
		return true
	}
	texts, err := v.lanes()
	if err != nil {
		return false
	}
	for i, text := range texts {
		if !v.matchesLane(text, lane(words, i, v.width())) {
			return false
		}
	}
	return true
}

func (v value) matchesLane(text string, bits uint64) bool {
	quiet, sign := uint64(0x7ff8)<<48, uint64(1)<<63 // the bits that make a NaN quiet
	if v.width() == 32 {
		quiet, sign = 0x7fc0<<16, 1<<31
	}
	switch text {
	case "nan:canonical":
		return bits&^sign == quiet
	case "nan:arithmetic":
		return bits&quiet == quiet
	}
	want, err := v.bits(text)
	return err == nil && bits == want
}

// lane cuts bits out of words. wazero does not define those above a value's width.
func lane(words []uint64, i, width int) uint64 {
	at := i * width
	return words[at/64] >> (at % 64) & (1<<width - 1)
}
