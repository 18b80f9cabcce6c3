package mask

import (
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// maxPrefix is how much of a form is searched for. The rest of a longer form is masked
// without being compared: that bounds memory, and also masks what was cut off.
const maxPrefix = 64

// form is one way in which a value may be written.
type form struct {
	pattern string // its beginning
	rest    int    // bytes after the pattern that are masked, too
}

// formsOf returns the forms of a value, each once.
func formsOf(value string) []form {
	longest := map[string]int{} // by pattern, the length of the form
	add := func(texts ...string) {
		for _, text := range texts {
			if len(text) >= MinLength {
				pattern := text[:min(len(text), maxPrefix)]
				longest[pattern] = max(longest[pattern], len(text))
			}
		}
	}
	for _, part := range append(partsOf(value), value) {
		add(part)
		add(base64Forms(part)...)
		add(hexForms(part)...)
		add(urlForms(part)...)
		add(jsonForms(part)...)
	}
	if strings.ContainsAny(value, "\r\n") {
		for line := range strings.FieldsFuncSeq(value, func(r rune) bool { return r == '\n' || r == '\r' }) {
			line = strings.TrimSpace(line)
			add(line)
			add(jsonForms(line)...)
		}
	}
	forms := make([]form, 0, len(longest))
	for pattern, length := range longest {
		forms = append(forms, form{pattern, length - len(pattern)})
	}
	return forms
}

// partsOf returns what is secret by itself within a value: the password of a URL, and of the
// other forms in which databases are named, user:password@tcp(host)/name and
// "host=… password=…".
func partsOf(value string) []string {
	var parts []string
	if u, err := url.Parse(value); err == nil && u.User != nil {
		password, _ := u.User.Password()
		parts = append(parts, password)
	} else if at := strings.LastIndexByte(value, '@'); at >= 0 && strings.Contains(value[at:], "/") && !strings.ContainsAny(value, " \r\n") {
		_, password, _ := strings.Cut(value[:at], ":")
		parts = append(parts, password)
	}
	for field := range strings.FieldsSeq(value) {
		if password, ok := strings.CutPrefix(field, "password="); ok {
			parts = append(parts, strings.Trim(password, "'"))
		}
	}
	return slices.DeleteFunc(parts, func(part string) bool { return len(part) < MinLength })
}

// base64Forms returns the characters that a value determines when 0, 1 or 2 bytes precede
// it in a group of three, and the ends that they have when nothing follows.
func base64Forms(value string) []string {
	var forms []string
	for before := range 3 {
		text := append(make([]byte, before, before+len(value)), value...)
		for _, alphabet := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
			padded := alphabet.EncodeToString(text)
			first := (before*8 + 5) / 6 // the first character without a bit of what precedes
			forms = append(forms, padded[first:len(text)*8/6], strings.TrimRight(padded, "=")[first:], padded[first:])
		}
	}
	return forms
}

func hexForms(value string) []string {
	lower := hex.EncodeToString([]byte(value))
	return []string{lower, strings.ToUpper(lower)}
}

// urlForms returns a value as the usual functions escape it: Go's for queries, segments and
// paths, JavaScript's encodeURIComponent, and RFC 3986 with no exception.
func urlForms(value string) []string {
	query := url.QueryEscape(value)
	forms := []string{
		query,
		strings.ReplaceAll(query, "+", "%20"),
		url.PathEscape(value),
		(&url.URL{Path: value}).EscapedPath(),
		percentEscape(value, "-_.!~*'()"),
		percentEscape(value, "-_.~"),
	}
	for _, f := range slices.Clone(forms) {
		forms = append(forms, lowerEscapes(f, '%', 2))
	}
	return forms
}

const (
	lowerDigits = "0123456789abcdef"
	upperDigits = "0123456789ABCDEF"
)

// percentEscape escapes all but letters, digits and the given bytes.
func percentEscape(value, keep string) string {
	var b strings.Builder
	for _, c := range []byte(value) {
		if isAlphanumeric(rune(c)) || strings.IndexByte(keep, c) >= 0 {
			b.WriteByte(c)
		} else {
			b.Write([]byte{'%', upperDigits[c>>4], upperDigits[c&15]})
		}
	}
	return b.String()
}

// lowerEscapes returns s with the digits after each mark in lower case.
func lowerEscapes(s string, mark byte, digits int) string {
	b := []byte(s)
	for i := range b {
		if b[i] == mark {
			for j := i + 1; j <= i+digits && j < len(b); j++ {
				if 'A' <= b[j] && b[j] <= 'F' {
					b[j] += 'a' - 'A'
				}
			}
		}
	}
	return string(b)
}

// jsonStyle is how an encoder writes strings. All of them escape what they must.
type jsonStyle struct {
	html  bool // escapes <, > and &, as Go does
	slash bool // escapes the slash with a backslash
	ascii bool // escapes what is not ASCII, as Python does
	words bool // keeps letters and digits only, and has no short escapes
}

// jsonForms returns a value as it may be written within a JSON string.
func jsonForms(value string) []string {
	var forms []string
	for _, style := range []jsonStyle{
		{}, {html: true}, {slash: true}, {ascii: true}, {slash: true, ascii: true}, {html: true, ascii: true}, {words: true},
	} {
		lower := jsonEscape(value, style, lowerDigits)
		forms = append(forms, lower)
		if strings.Contains(lower, `\u`) {
			forms = append(forms, jsonEscape(value, style, upperDigits))
		}
	}
	return forms
}

// shortEscapes are the characters with a short escape, each followed by its letter.
const shortEscapes = "\"\"\\\\\bb\ff\nn\rr\tt"

func jsonEscape(value string, style jsonStyle, digits string) string {
	var b strings.Builder
	for i, r := range value {
		short := strings.IndexRune(shortEscapes, r)
		switch {
		case r == utf8.RuneError && value[i] != 0xef: // a byte that is not UTF-8 is kept by some
			b.WriteByte(value[i])
		case style.words && isAlphanumeric(r):
			b.WriteRune(r)
		case !style.words && short >= 0 && r < utf8.RuneSelf && !isAlphanumeric(r):
			b.WriteByte('\\')
			b.WriteByte(shortEscapes[short+1])
		case style.slash && r == '/':
			b.WriteString(`\/`)
		case style.words, r < ' ', style.ascii && r >= 0x7f,
			style.html && (strings.ContainsRune("<>&", r) || r == 0x2028 || r == 0x2029):
			for _, unit := range utf16.Encode([]rune{r}) {
				b.Write([]byte{'\\', 'u', digits[unit>>12], digits[unit>>8&15], digits[unit>>4&15], digits[unit&15]})
			}
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

func isAlphanumeric(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
}
