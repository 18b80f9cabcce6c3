package jsonscan

import (
	"encoding/binary"
	"math/bits"
)

// ordinary has the bytes that stand for themselves in a string.
var ordinary = func() (t [256]bool) {
	for c := range t {
		t[c] = c >= ' ' && c != '"' && c != '\\'
	}
	return t
}()

// escaped has the bytes that make an escape with a backslash before them.
var escaped = [256]bool{'"': true, '\\': true, '/': true, 'b': true, 'f': true, 'n': true, 'r': true, 't': true}

// endOfText is the index behind the quote that ends a string, of whose text data[i:] is the
// rest.
func endOfText(data []byte, i int) (int, error) {
	for {
		for near := min(i+8, len(data)); i < near && ordinary[data[i]]; {
			i++
		}
		if i < len(data) && ordinary[data[i]] {
			i = endOfOrdinary(data, i)
		}
		switch {
		case i >= len(data) || data[i] < ' ':
			return i, ErrSyntax
		case data[i] == '"':
			return i + 1, nil
		default:
			var err error
			if i, err = endOfEscape(data, i+1); err != nil {
				return i, err
			}
		}
	}
}

// endOfOrdinary reads ordinary bytes by eight.
func endOfOrdinary(data []byte, i int) int {
	for i+8 <= len(data) {
		if m := special(binary.LittleEndian.Uint64(data[i:])); m != 0 {
			return i + bits.TrailingZeros64(m)/8
		}
		i += 8
	}
	for i < len(data) && ordinary[data[i]] {
		i++
	}
	return i
}

// Seven bits and one of each byte of a word.
const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// special has a bit set for bytes that are not ordinary, the lowest one for the first of
// them; see "Bit Twiddling Hacks" by Sean Eron Anderson, "Determine if a word has a zero
// byte".
func special(w uint64) uint64 {
	quote, escape := w^'"'*ones, w^'\\'*ones
	return ((quote-ones)&^quote | (escape-ones)&^escape | (w-' '*ones)&^w) & highs
}

// endOfEscape is the index behind an escape, given that of what follows its backslash.
func endOfEscape(data []byte, i int) (int, error) {
	switch {
	case i >= len(data):
		return i, ErrSyntax
	case escaped[data[i]]:
		return i + 1, nil
	case data[i] != 'u':
		return i, ErrSyntax
	}
	for range 4 {
		if i++; i >= len(data) || !isHex(data[i]) {
			return i, ErrSyntax
		}
	}
	return i + 1, nil
}

func isHex(c byte) bool { return isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'f' }

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }

func skipSpace(data []byte, i int) int {
	for i < len(data) && isSpace(data[i]) {
		i++
	}
	return i
}

// endOfKeyword is the index behind true, false or null.
func endOfKeyword(data []byte, i int) (int, error) {
	word := "null"
	switch data[i] {
	case 't':
		word = "true"
	case 'f':
		word = "false"
	}
	for k := range len(word) {
		if i+k >= len(data) || data[i+k] != word[k] {
			return i + k, ErrSyntax
		}
	}
	return i + len(word), nil
}
