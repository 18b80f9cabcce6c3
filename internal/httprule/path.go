package httprule

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// canonicalPath decodes each segment of a path that begins with a slash, and encodes it
// again.
func canonicalPath(path string) (string, error) {
	segments := strings.Split(path[1:], "/")
	for i, raw := range segments {
		if raw == "" && i < len(segments)-1 {
			return "", errors.New("the path has //: servers differ about its meaning")
		}
		segment, err := canonicalSegment(raw)
		if err != nil {
			return "", err
		}
		segments[i] = segment
	}
	return "/" + strings.Join(segments, "/"), nil
}

// canonicalSegment refuses what some server would read as another path.
func canonicalSegment(raw string) (string, error) {
	text, err := decode(raw)
	if err != nil {
		return "", err
	}
	// Some servers drop what follows a semicolon before they look for dots.
	if name, _, _ := strings.Cut(text, ";"); name == "." || name == ".." {
		return "", fmt.Errorf("the path has the relative segment %s: write the path that it leads to", quote(raw))
	}
	if strings.ContainsAny(text, `/\`) {
		return "", fmt.Errorf("the path segment %s has a slash or backslash inside: servers differ about its meaning", quote(raw))
	}
	if !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
		return "", fmt.Errorf("the path segment %s has a control character or is not UTF-8", quote(raw))
	}
	return encode(text), nil
}

func decode(raw string) (string, error) {
	if !strings.Contains(raw, "%") {
		return raw, nil
	}
	var text strings.Builder
	for i := 0; i < len(raw); i++ {
		if raw[i] != '%' {
			text.WriteByte(raw[i])
			continue
		}
		if i+2 >= len(raw) || unhex(raw[i+1]) < 0 || unhex(raw[i+2]) < 0 {
			return "", fmt.Errorf("the path segment %s has a %% without two hexadecimal digits: write %%25 for it", quote(raw))
		}
		text.WriteByte(byte(unhex(raw[i+1])<<4 | unhex(raw[i+2])))
		i += 2
	}
	return text.String(), nil
}

// encode leaves what RFC 3986 allows in a segment ("pchar").
func encode(text string) string {
	const hex = "0123456789ABCDEF"
	var out strings.Builder
	for i := range len(text) {
		c := text[i]
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-._~!$&'()*+,;=:@", c) >= 0 {
			out.WriteByte(c)
			continue
		}
		out.WriteByte('%')
		out.WriteByte(hex[c>>4])
		out.WriteByte(hex[c&15])
	}
	return out.String()
}

func unhex(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}
