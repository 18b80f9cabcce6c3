package guest

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf8"
)

// Head is the head of an operation, an object of JSON. It is written by hand: in a guest,
// encoding/json takes longer than all the rest of an operation.
type Head struct{ text []byte }

func (h *Head) name(name string) {
	if len(h.text) == 0 {
		h.text = append(make([]byte, 0, 256), '{')
	} else {
		h.text = append(h.text, ',')
	}
	h.text = append(append(append(h.text, '"'), name...), '"', ':')
}

// Text adds a text, unless it is empty.
func (h *Head) Text(name, value string) {
	if value != "" {
		h.name(name)
		h.text = appendText(h.text, value)
	}
}

// Int adds an integer, unless it is 0.
func (h *Head) Int(name string, value int64) {
	if value != 0 {
		h.name(name)
		h.text = strconv.AppendInt(h.text, value, 10)
	}
}

// Uint adds an integer.
func (h *Head) Uint(name string, value uint64) {
	h.name(name)
	h.text = strconv.AppendUint(h.text, value, 10)
}

// Bool adds true, unless the value is false.
func (h *Head) Bool(name string, value bool) {
	if value {
		h.Raw(name, "true")
	}
}

// Raw adds JSON.
func (h *Head) Raw(name, value string) {
	h.name(name)
	h.text = append(h.text, value...)
}

// Texts adds a list of texts, unless it is empty.
func (h *Head) Texts(name string, values []string) {
	if len(values) > 0 {
		h.name(name)
		h.text = appendTexts(h.text, values)
	}
}

// Lists adds an object of lists of texts, unless it is empty.
func (h *Head) Lists(name string, lists map[string][]string) {
	if len(lists) == 0 {
		return
	}
	h.name(name)
	h.text = append(h.text, '{')
	first := true
	for key, values := range lists {
		if !first {
			h.text = append(h.text, ',')
		}
		first = false
		h.text = append(appendText(h.text, key), ':')
		h.text = appendTexts(h.text, values)
	}
	h.text = append(h.text, '}')
}

// JSON is the object.
func (h *Head) JSON() []byte {
	if len(h.text) == 0 {
		return []byte("{}")
	}
	return append(h.text, '}')
}

func appendTexts(out []byte, values []string) []byte {
	out = append(out, '[')
	for i, value := range values {
		if i > 0 {
			out = append(out, ',')
		}
		out = appendText(out, value)
	}
	return append(out, ']')
}

func appendText(out []byte, text string) []byte {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			quoted, _ := json.Marshal(text) // any string can be encoded
			return append(out, quoted...)
		}
	}
	return append(append(append(out, '"'), text...), '"')
}

// Members calls fn for each member of an object that the host has written: valid, without
// white space, and with names that need no escapes. It returns at whatever else it meets.
func Members(object []byte, fn func(name string, value []byte)) {
	if len(object) < 2 || object[0] != '{' {
		return
	}
	for at := 1; at < len(object) && object[at] == '"'; {
		end := at + valueSize(object[at:])
		value := end + 1
		if value >= len(object) {
			return
		}
		size := valueSize(object[value:])
		fn(string(object[at+1:end-1]), object[value:value+size])
		at = value + size + 1
	}
}

// Elements calls fn for each element of an array, likewise.
func Elements(array []byte, fn func(value []byte)) {
	if len(array) < 2 || array[0] != '[' || array[1] == ']' {
		return
	}
	for at := 1; at < len(array); {
		size := valueSize(array[at:])
		fn(array[at : at+size])
		at += size + 1
	}
}

// valueSize is the bytes of the value at the beginning. It leaps over strings, which most of
// an answer is: a guest takes long for each byte that a loop of its own looks at.
func valueSize(text []byte) int {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			i += textSize(text[i:]) - 1
			if depth == 0 {
				return i + 1
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i // after a number or a word
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case ',':
			if depth == 0 {
				return i
			}
		}
	}
	return len(text)
}

// textSize is the bytes of the string at the beginning, with its quotes.
func textSize(text []byte) int {
	for size := 1; ; {
		next := bytes.IndexByte(text[size:], '"')
		if next < 0 {
			return len(text)
		}
		size += next + 1
		escapes := 0
		for text[size-2-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return size
		}
	}
}

// TextOf is a text, "" for any other value.
func TextOf(value []byte) string {
	if len(value) < 2 || value[0] != '"' {
		return ""
	}
	inner := value[1 : len(value)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return string(inner)
	}
	var text string
	_ = json.Unmarshal(value, &text) // of the host
	return text
}

// IntOf is an integer, 0 for any other value.
func IntOf(value []byte) int64 {
	n, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil {
		return 0
	}
	return n
}
