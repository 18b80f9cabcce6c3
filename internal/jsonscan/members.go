package jsonscan

import "encoding/json"

// Members checks an object and calls fn for each of its members, in their order, until that
// fails. It fails with ErrSyntax for another value. A name that occurs twice is given twice.
func Members(object []byte, fn func(name string, value []byte) error) error {
	if _, _, err := Check(object); err != nil {
		return err
	}
	i := skipSpace(object, 0)
	if object[i] != '{' {
		return ErrSyntax
	}
	for i = skipSpace(object, i+1); object[i] != '}'; i = skipSpace(object, i) {
		if object[i] == ',' {
			i = skipSpace(object, i+1)
		}
		end := endOfValue(object, i)
		var name string
		if err := Decode(object[i:end], &name); err != nil {
			return err
		}
		i = skipSpace(object, skipSpace(object, end)+1) // behind the colon
		end = endOfValue(object, i)
		if err := fn(name, object[i:end]); err != nil {
			return err
		}
		i = end
	}
	return nil
}

// Decode is json.Unmarshal, and takes a tenth of the time for most strings.
func Decode(value []byte, to any) error {
	if text, ok := to.(*string); ok && isPlain(value) {
		*text = string(value[1 : len(value)-1])
		return nil
	}
	return json.Unmarshal(value, to)
}

// isPlain reports whether a value is a string that is written as it is.
func isPlain(value []byte) bool {
	last := len(value) - 1
	if last < 1 || value[0] != '"' || value[last] != '"' {
		return false
	}
	for _, c := range value[1:last] {
		if c < ' ' || c >= 0x80 || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// endOfValue is the index behind a value that [Check] accepted.
func endOfValue(data []byte, i int) int {
	depth := 0
	for ; i < len(data); i++ {
		switch data[i] {
		case '"':
			var err error
			if i, err = endOfText(data, i+1); err != nil {
				return len(data)
			}
			i--
		case '{', '[':
			depth++
			continue
		case '}', ']':
			if depth == 0 {
				return i // after a number or a word
			}
			depth--
		case ',', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return i
			}
			continue
		default:
			continue
		}
		if depth == 0 {
			return i + 1
		}
	}
	return i
}
