package jsonscan

import (
	"errors"
	"fmt"
)

// Bounds of a value. Decoders recurse with the depth, and arithmetic grows with digits and
// exponents.
const (
	MaxDepth    = 1000 // arrays and objects within each other
	MaxNumber   = 1000 // bytes of one number without its sign: digits, point and exponent
	maxExponent = 3    // digits of an exponent, leading zeros left out: up to e999 and e-999
)

// Errors of [Check].
var (
	ErrSyntax   = errors.New("not JSON")
	ErrDepth    = fmt.Errorf("arrays and objects are nested more than %d deep: flatten them", MaxDepth)
	ErrNumber   = fmt.Errorf("a number is longer than %d bytes: send it as a string", MaxNumber)
	ErrExponent = errors.New("the exponent of a number is not between -999 and 999: send the number as a string")
)

// Form is how a value is written.
type Form struct {
	Spaced bool // it contains white space that means nothing, or such is around it
}

// Check reads data as one JSON value (RFC 8259) with white space around it, once, without
// allocating and without recursion. at is the index of the byte that an error is about.
//
// One function with labels for states: the calls of a recursive descent take twice as
// long (BenchmarkJSON in internal/bench). What is usual is asked first, white space last.
func Check(data []byte) (f Form, at int, err error) {
	var (
		depth  int
		array  bool                    // what is innermost; the opposite is an object
		inner  uint64                  // a bit for each of the innermost up to 64 levels: an array
		outer  [MaxDepth/64 + 1]uint64 // inner, as it was at each 64th level
		naming bool                    // the text is a member's name
		i      int
	)

value:
	if i >= len(data) {
		return f, i, ErrSyntax
	}
	switch c := data[i]; c {
	case '"':
		i++
		goto text
	case '{', '[':
		if depth == MaxDepth {
			return f, i, ErrDepth
		}
		i++
		if depth++; depth%64 == 0 {
			outer[depth/64] = inner
		}
		inner <<= 1
		if array = c == '['; array {
			inner |= 1
		}
	empty:
		if i < len(data) {
			switch {
			case data[i] == c+2:
				i++
				goto closed
			case isSpace(data[i]):
				f.Spaced = true
				i = skipSpace(data, i)
				goto empty
			}
		}
		if array {
			goto value
		}
		goto name
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		if i, err = endOfNumber(data, i); err != nil {
			return f, i, err
		}
	case 't', 'f', 'n':
		if i, err = endOfKeyword(data, i); err != nil {
			return f, i, err
		}
	case ' ', '\t', '\r', '\n':
		f.Spaced = true
		i = skipSpace(data, i)
		goto value
	default:
		return f, i, ErrSyntax
	}

next: // after a value
	if depth == 0 {
		if i < len(data) {
			f.Spaced = true
			i = skipSpace(data, i)
		}
		if i < len(data) {
			return f, i, ErrSyntax
		}
		return f, i, nil
	}
	if i >= len(data) {
		return f, i, ErrSyntax
	}
	switch c := data[i]; {
	case c == ',':
		i++
		if array {
			goto value
		}
		goto name
	case c == '}' && !array, c == ']' && array:
		i++
		goto closed
	case isSpace(c):
		f.Spaced = true
		i = skipSpace(data, i)
		goto next
	}
	return f, i, ErrSyntax

closed:
	inner >>= 1
	if depth%64 == 0 {
		inner = outer[depth/64]
	}
	depth--
	array = inner&1 != 0
	goto next

name:
	if i >= len(data) || data[i] != '"' {
		if i < len(data) && isSpace(data[i]) {
			f.Spaced = true
			i = skipSpace(data, i)
			goto name
		}
		return f, i, ErrSyntax
	}
	i++
	naming = true

text:
	if i+8 <= len(data) { // most are short
		switch w := (*[8]byte)(data[i:]); {
		case !ordinary[w[0]]:
		case !ordinary[w[1]]:
			i++
		case !ordinary[w[2]]:
			i += 2
		case !ordinary[w[3]]:
			i += 3
		case !ordinary[w[4]]:
			i += 4
		case !ordinary[w[5]]:
			i += 5
		case !ordinary[w[6]]:
			i += 6
		case !ordinary[w[7]]:
			i += 7
		default:
			i += 8
		}
	}
	if i < len(data) && data[i] == '"' {
		i++
	} else if i, err = endOfText(data, i); err != nil {
		return f, i, err
	}
	if !naming {
		goto next
	}
	naming = false

colon:
	if i >= len(data) || data[i] != ':' {
		if i < len(data) && isSpace(data[i]) {
			f.Spaced = true
			i = skipSpace(data, i)
			goto colon
		}
		return f, i, ErrSyntax
	}
	i++
	goto value
}
