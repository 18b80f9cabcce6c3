package httpreach

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
)

const (
	minEcho    = 4 // bytes of a credential that are looked for; shorter ones would be found everywhere
	redactedAs = "***"
)

// echoes are the forms of credentials that servers repeat: the value, in base64 at each
// alignment, escaped for URLs and for JSON.
type echoes struct {
	forms [][]byte // longest first
}

// newEchoes takes the values of credentials.
func newEchoes(values []string) *echoes {
	var forms []string
	for _, value := range values {
		if len(value) < minEcho {
			continue
		}
		forms = append(forms, value)
		forms = append(forms, base64Forms(value)...)
		forms = append(forms, urlForms(value)...)
		forms = append(forms, jsonForms(value)...)
	}
	slices.SortFunc(forms, func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	e := &echoes{}
	for _, form := range slices.Compact(forms) {
		e.forms = append(e.forms, []byte(form))
	}
	return e
}

// base64Forms are what a value looks like within a longer text in base64, without the
// characters at its ends that it shares with its neighbors.
func base64Forms(value string) []string {
	var forms []string
	for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
		forms = append(forms, encoding.EncodeToString([]byte(value)))
		for offset, shared := range []int{0, 2, 3} {
			text := encoding.WithPadding(base64.NoPadding).EncodeToString(append(make([]byte, offset), value...))
			if form := text[shared : (offset+len(value))*8/6]; len(form) >= minEcho {
				forms = append(forms, form)
			}
		}
	}
	return forms
}

func urlForms(value string) []string {
	var forms []string
	for _, form := range []string{url.QueryEscape(value), url.PathEscape(value)} {
		forms = append(forms, form, lowerHex(form))
	}
	return forms
}

// lowerHex writes %2F as %2f.
func lowerHex(escaped string) string {
	text := []byte(escaped)
	for i := 0; i+2 < len(text); i++ {
		if text[i] == '%' {
			copy(text[i:], bytes.ToLower(text[i:i+3]))
		}
	}
	return string(text)
}

func jsonForms(value string) []string {
	var forms []string
	for _, html := range []bool{false, true} {
		var out bytes.Buffer
		encoder := json.NewEncoder(&out)
		encoder.SetEscapeHTML(html)
		if encoder.Encode(value) == nil {
			forms = append(forms, strings.Trim(strings.TrimSpace(out.String()), `"`))
		}
	}
	return forms
}

// clean replaces the credentials in what a server has sent.
func (e *echoes) clean(text []byte) []byte {
	for _, form := range e.forms {
		if bytes.Contains(text, form) {
			text = bytes.ReplaceAll(text, form, []byte(redactedAs))
		}
	}
	return text
}

func (e *echoes) cleanText(text string) string {
	if len(e.forms) == 0 {
		return text
	}
	return string(e.clean([]byte(text)))
}
