package run

import (
	"encoding/json"
	"fmt"

	"github.com/flowhost/flowhost/internal/jsonscan"
)

// Bounds of JSON that the host accepts from outside: payloads, params, outputs.
const (
	MaxPayloadDepth  = jsonscan.MaxDepth  // arrays and objects within each other
	MaxPayloadNumber = jsonscan.MaxNumber // bytes of one number without its sign: digits, point and exponent
)

// Errors of [CheckPayload].
var (
	ErrPayloadSyntax   = jsonscan.ErrSyntax
	ErrPayloadDepth    = jsonscan.ErrDepth
	ErrPayloadNumber   = jsonscan.ErrNumber
	ErrPayloadExponent = jsonscan.ErrExponent
)

// CheckPayload refuses what is not JSON, is nested too deeply or has a number that is too
// long. It reads data once, without allocating, and recurses nowhere.
func CheckPayload(data []byte) error {
	_, err := scanPayload(data)
	return err
}

// CompactPayload checks data as [CheckPayload] does. It returns it without the white space that means
// nothing: data itself when there is none.
func CompactPayload(data json.RawMessage) (json.RawMessage, error) {
	form, err := scanPayload(data)
	if err != nil || !form.Spaced {
		return data, err
	}
	return jsonscan.AppendCompact(make([]byte, 0, len(data)), data), nil
}

func scanPayload(data []byte) (jsonscan.Form, error) {
	form, at, err := jsonscan.Check(data)
	switch {
	case err == nil:
		return form, nil
	case err != jsonscan.ErrSyntax:
		return form, fmt.Errorf("at byte %d: %w", at, err)
	}
	if words := json.Unmarshal(data, new(json.RawMessage)); words != nil {
		return form, fmt.Errorf("%w: %w", err, words)
	}
	return form, err
}
