package scheduler

import (
	"strconv"
	"strings"
)

// word is a part of an expression and the byte at which it starts.
type word struct {
	text   string
	offset int
}

// cut is strings.Cut on words.
func (w word) cut(sep string) (before, after word, ok bool) {
	i := strings.Index(w.text, sep)
	if i < 0 {
		return w, word{}, false
	}
	return w.to(i), w.from(i + len(sep)), true
}

func (w word) from(i int) word { return word{w.text[i:], w.offset + i} }
func (w word) to(i int) word   { return word{w.text[:i], w.offset} }

// fault is an error at the word.
func (w word) fault(reason, hint string) *ParseError {
	return &ParseError{Offset: w.offset, Reason: reason, Hint: hint}
}

// split gives the words between any of the separators, without empty ones.
func split(s, separators string) []word {
	var words []word
	start := 0
	for i := 0; i <= len(s); i++ {
		if i < len(s) && strings.IndexByte(separators, s[i]) < 0 {
			continue
		}
		if i > start {
			words = append(words, word{s[start:i], start})
		}
		start = i + 1
	}
	return words
}

// number reads up to four digits: no value is longer, and none overflows.
func number(s string) (int, bool) {
	if len(s) > 4 {
		return 0, false
	}
	v, err := strconv.ParseUint(s, 10, 16)
	return int(v), err == nil
}
