package mask

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/flowhost/flowhost/internal/jsonscan"
)

// JSON returns a JSON value with values masked, which is still one: they are masked within
// strings, however the strings escape them, and a number that holds one becomes a string.
// Should a value span several strings or numbers, all of the JSON becomes "***". What is not
// JSON is masked as [Masker.Bytes] does it. Without a value JSON returns raw itself, which
// it never changes.
func (m *Masker) JSON(raw json.RawMessage) json.RawMessage {
	f := m.finder.Load()
	if f == nil {
		return raw
	}
	if len(f.find(raw)) == 0 && bytes.IndexByte(raw, '\\') < 0 {
		return raw // the usual case: what is not in the whole is in no part
	}
	if _, _, err := jsonscan.Check(raw); err != nil {
		return m.Bytes(raw)
	}
	masked := raw
	if edits := f.tokens(raw); len(edits) > 0 {
		masked = make([]byte, 0, len(raw))
		at := 0
		for _, e := range edits {
			masked = append(masked, raw[at:e.start]...)
			masked = append(masked, e.text...)
			at = e.end
		}
		masked = append(masked, raw[at:]...)
	}
	if len(f.find(masked)) > 0 {
		return json.RawMessage(`"` + replacement + `"`)
	}
	return masked
}

// edit replaces a part of a text.
type edit struct {
	span
	text string
}

// tokens returns what has to be replaced in the strings and numbers of a JSON value.
func (f *finder) tokens(raw []byte) []edit {
	var edits []edit
	for at := 0; at < len(raw); {
		switch c := raw[at]; {
		case c == '"':
			end, escaped := endOfString(raw, at)
			for _, s := range f.inString(raw[at+1:end-1], escaped) {
				edits = append(edits, edit{span{at + 1 + s.start, at + 1 + s.end}, replacement})
			}
			at = end
		case c == '-' || '0' <= c && c <= '9':
			end := at + 1
			for end < len(raw) && isNumber(raw[end]) {
				end++
			}
			if end-at >= MinLength && len(f.find(raw[at:end])) > 0 {
				edits = append(edits, edit{span{at, end}, `"` + replacement + `"`})
			}
			at = end
		default:
			at++
		}
	}
	return edits
}

// endOfString returns where the string that begins at an index ends, and whether it has
// escapes.
func endOfString(raw []byte, at int) (end int, escaped bool) {
	for at++; at < len(raw); at++ {
		switch raw[at] {
		case '"':
			return at + 1, escaped
		case '\\':
			escaped = true
			at++
		}
	}
	return len(raw), escaped
}

func isNumber(c byte) bool {
	return '0' <= c && c <= '9' || c == '.' || c == 'e' || c == 'E' || c == '+' || c == '-'
}

// inString returns the spans of a string's text, without its quotes: those of the text as
// it is written and of the one that it means. No span cuts an escape.
func (f *finder) inString(text []byte, escaped bool) []span {
	if len(text) < MinLength {
		return nil
	}
	written := f.find(text)
	if !escaped {
		for i := range written {
			written[i].end = min(written[i].end, len(text))
		}
		return written
	}
	meaning, places := unescape(text)
	meant := f.find(meaning)
	if len(written)+len(meant) == 0 {
		return nil
	}
	spans := make([]span, 0, len(written)+len(meant))
	for _, s := range meant {
		spans = append(spans, span{places[s.start], places[afterUnit(places, min(s.end, len(meaning)))]})
	}
	for _, s := range written {
		from, _ := slices.BinarySearch(places, s.start+1) // the first unit after that of start
		to, _ := slices.BinarySearch(places, min(s.end, len(text)))
		spans = append(spans, span{places[from-1], places[to]})
	}
	return join(spans)
}

// afterUnit is the first index at or after end that begins a unit: all bytes of a character
// have the place of its escape.
func afterUnit(places []int, end int) int {
	for end < len(places)-1 && places[end] == places[end-1] {
		end++
	}
	return end
}

// unescape returns what the text of a JSON string means, and for each byte of that, and for
// its end, where the character or escape is written that the byte comes from.
func unescape(text []byte) (meaning []byte, places []int) {
	meaning, places = make([]byte, 0, len(text)), make([]int, 0, len(text)+1)
	for at := 0; at < len(text); {
		length := 1
		if text[at] != '\\' {
			meaning = append(meaning, text[at])
		} else {
			var r rune
			r, length = escape(text[at:])
			meaning = utf8.AppendRune(meaning, r)
		}
		for len(places) < len(meaning) {
			places = append(places, at)
		}
		at += length
	}
	return meaning, append(places, len(text))
}

// escape returns the character of the escape at the beginning of text, or of the two that
// are a surrogate pair, and how many bytes it takes.
func escape(text []byte) (r rune, length int) {
	if len(text) < 2 {
		return utf8.RuneError, len(text)
	}
	switch c := text[1]; c {
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'u':
		r := unit(text)
		if !utf16.IsSurrogate(r) {
			return r, min(6, len(text))
		}
		if pair := utf16.DecodeRune(r, unit(text[min(6, len(text)):])); pair != utf8.RuneError {
			return pair, 12
		}
		return utf8.RuneError, min(6, len(text))
	default:
		return rune(c), 2
	}
}

// unit is the code unit of an escape \uXXXX at the beginning of text.
func unit(text []byte) rune {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return utf8.RuneError
	}
	n, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	if err != nil {
		return utf8.RuneError
	}
	return rune(n)
}
