package secrets

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// member returns one of the strings in an object, which is written as JSON or as lines
// NAME=value. Failures name the key, and nothing that was read.
func member(content []byte, key string) (string, *failure) {
	if key == "" {
		return "", &failure{text: "its declaration has no key"}
	}
	if trimmed := bytes.TrimSpace(content); bytes.HasPrefix(trimmed, []byte("{")) {
		var object map[string]json.RawMessage
		if json.Unmarshal(trimmed, &object) != nil { // the error may quote
			return "", &failure{text: "its file is decrypted, but not valid JSON", retryable: true}
		}
		return stringOf(object, key)
	}
	values, err := parseLines(string(content))
	if err != nil {
		return "", &failure{text: "its file is decrypted, but neither a JSON object nor lines NAME=value", cause: ": " + err.Error(), retryable: true}
	}
	value, ok := values[key]
	if !ok {
		return "", noKey(key)
	}
	return value, nil
}

// stringOf returns a string of a JSON object.
func stringOf(object map[string]json.RawMessage, key string) (string, *failure) {
	raw, ok := object[key]
	if !ok {
		return "", noKey(key)
	}
	var value *string
	if json.Unmarshal(raw, &value) != nil || value == nil {
		return "", &failure{text: fmt.Sprintf("the value of key %q is not a string", key), retryable: true}
	}
	return *value, nil
}

func noKey(key string) *failure {
	return &failure{text: fmt.Sprintf("there is no key %q", key), retryable: true}
}

var (
	errNoName  = errors.New("it is not NAME=value")
	errQuote   = errors.New("the quote does not end, or something follows it")
	errEscape  = errors.New(`the escapes are \n, \r, \t, \", \$ and \\`)
	errRepeats = errors.New("the name was there before")
)

// parseLines reads lines NAME=value: comments begin with #, "export" before a name is
// skipped. A value in single quotes is taken as it is, in double quotes it may have escapes;
// one without quotes ends with the line, or before a comment. No value is on several lines.
func parseLines(text string) (map[string]string, error) {
	values := map[string]string{}
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		name, rest, ok := strings.Cut(strings.TrimPrefix(line, "export "), "=")
		name = strings.TrimSpace(name)
		if !ok || name == "" || strings.ContainsAny(name, " \t\"'") {
			return nil, fmt.Errorf("line %d: %w", number, errNoName)
		}
		if _, ok := values[name]; ok {
			return nil, fmt.Errorf("line %d: %w", number, errRepeats)
		}
		value, err := parseValue(strings.TrimSpace(rest))
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		values[name] = value
	}
	return values, nil
}

func parseValue(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	var value, after string
	switch text[0] {
	case '\'':
		end := strings.IndexByte(text[1:], '\'')
		if end < 0 {
			return "", errQuote
		}
		value, after = text[1:1+end], text[2+end:]
	case '"':
		var err error
		if value, after, err = quoted(text[1:]); err != nil {
			return "", err
		}
	default:
		value, _, _ = strings.Cut(text, " #")
		return strings.TrimSpace(value), nil
	}
	if after = strings.TrimSpace(after); after != "" && after[0] != '#' {
		return "", errQuote
	}
	return value, nil
}

// quoted reads up to the closing double quote.
func quoted(text string) (value, after string, err error) {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '"':
			return b.String(), text[i+1:], nil
		case '\\':
			if i++; i == len(text) {
				return "", "", errQuote
			}
			const names, bytes = `nrt"$\`, "\n\r\t\"$\\"
			at := strings.IndexByte(names, text[i])
			if at < 0 {
				return "", "", errEscape
			}
			b.WriteByte(bytes[at])
		default:
			b.WriteByte(c)
		}
	}
	return "", "", errQuote
}
