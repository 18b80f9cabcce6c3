package run

import (
	"errors"
	"fmt"
)

// Bounds of JSON that the host accepts from outside: payloads, params, outputs.
// Decoders recurse with the depth, and arithmetic grows with digits and exponents.
const (
	MaxPayloadDepth    = 1000 // arrays and objects within each other
	MaxPayloadNumber   = 1000 // bytes of one number without its sign: digits, point and exponent
	maxPayloadExponent = 3    // digits of an exponent, leading zeros left out: up to e999 and e-999
)

// Errors of [CheckPayload].
var (
	ErrPayloadDepth    = fmt.Errorf("arrays and objects are nested more than %d deep: flatten them", MaxPayloadDepth)
	ErrPayloadNumber   = fmt.Errorf("a number is longer than %d bytes: send it as a string", MaxPayloadNumber)
	ErrPayloadExponent = errors.New("the exponent of a number is not between -999 and 999: send the number as a string")
)

// CheckPayload refuses JSON that is nested too deeply or has a number that is too
// long. It reads data once, without allocating, and recurses nowhere. It does not
// check that data is JSON: the decoder does, before or afterwards.
func CheckPayload(data []byte) error {
	depth := 0
	for i := 0; i < len(data); {
		switch c := data[i]; {
		case c == '"':
			i = endOfString(data, i+1)
			continue
		case c == '[', c == '{':
			if depth++; depth > MaxPayloadDepth {
				return fmt.Errorf("at byte %d: %w", i, ErrPayloadDepth)
			}
		case c == ']', c == '}':
			depth--
		case c >= '0' && c <= '9':
			size, err := checkNumber(data[i:])
			if err != nil {
				return fmt.Errorf("at byte %d: %w", i, err)
			}
			i += size
			continue
		}
		i++
	}
	return nil
}

// endOfString is the index behind the string whose text begins at from.
func endOfString(data []byte, from int) int {
	for i := from; i < len(data); i++ {
		switch data[i] {
		case '"':
			return i + 1
		case '\\':
			i++
		}
	}
	return len(data)
}

// checkNumber measures the number at the start of data, which begins with a digit.
func checkNumber(data []byte) (size int, err error) {
	exponent, digits := false, 0
	for _, c := range data {
		switch {
		case c == 'e' || c == 'E':
			exponent, digits = true, 0
		case c >= '0' && c <= '9':
			if c != '0' || digits > 0 {
				digits++
			}
		case c != '.' && c != '+' && c != '-':
			return size, checkExponent(exponent, digits)
		}
		if size++; size > MaxPayloadNumber {
			return size, ErrPayloadNumber
		}
	}
	return size, checkExponent(exponent, digits)
}

func checkExponent(exponent bool, digits int) error {
	if exponent && digits > maxPayloadExponent {
		return ErrPayloadExponent
	}
	return nil
}
