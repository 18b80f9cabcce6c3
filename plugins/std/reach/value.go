package main

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// Value is a value of JSON whose integers stay whole: float64, which encoding/json makes of
// numbers, has 53 bits.
type Value struct{ Value any } // nil, bool, string, int64, float64, json.RawMessage

// UnmarshalJSON implements json.Unmarshaler.
func (v *Value) UnmarshalJSON(text []byte) error {
	v.Value = nil
	switch {
	case bytes.Equal(text, []byte("null")):
		return nil
	case text[0] == '{' || text[0] == '[':
		v.Value = json.RawMessage(bytes.Clone(text))
		return nil
	}
	if n, err := strconv.ParseInt(string(text), 10, 64); err == nil {
		v.Value = n
		return nil
	}
	return json.Unmarshal(text, &v.Value)
}

// Nested reports whether it is an object or a list.
func (v Value) Nested() bool {
	_, nested := v.Value.(json.RawMessage)
	return nested
}
