package mask

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"
)

// model masks by looking for each form at each place.
func model(values []string, text []byte) string {
	covered := make([]bool, len(text))
	for _, v := range values {
		if v = strings.TrimSpace(v); len(v) < MinLength {
			continue
		}
		for _, f := range formsOf(v) {
			for at := range text {
				if bytes.HasPrefix(text[at:], []byte(f.pattern)) {
					for i := at; i < min(at+len(f.pattern)+f.rest, len(text)); i++ {
						covered[i] = true
					}
				}
			}
		}
	}
	var out strings.Builder
	for i := range text {
		switch {
		case !covered[i]:
			out.WriteByte(text[i])
		case i == 0 || !covered[i-1]:
			out.WriteString(replacement)
		}
	}
	return out.String()
}

// inParts masks text that is written in parts of random sizes.
func inParts(t *testing.T, m *Masker, text []byte, chance *rand.Rand) string {
	t.Helper()
	var out bytes.Buffer
	w := m.Writer(&out)
	for len(text) > 0 {
		n := min(1+chance.IntN(1+chance.IntN(40)), len(text))
		part := bytes.Clone(text[:n])
		if _, err := w.Write(part); err != nil {
			t.Fatal(err)
		}
		clear(part) // which belongs to the caller again
		text = text[n:]
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// FuzzModel compares all ways of masking with the model.
func FuzzModel(f *testing.F) {
	f.Add("abababab", "bababc", []byte("xabababababab bababc"), uint64(1))
	f.Add("abcdef", "defghi", []byte("abcdefghi abcdeff"), uint64(2))
	f.Add("secret\nof two", "two\nsecret", []byte("secret\nof two\nsecret\nof"), uint64(3))
	f.Add(strings.Repeat("a", 100), "aaaaaab", bytes.Repeat([]byte("a"), 300), uint64(4))
	f.Add("https://u:pass-word@h/", "%2F%3a%", []byte("pass-word %252F%253a%25 cGFzcy13b3Jk"), uint64(5))
	f.Fuzz(func(t *testing.T, one, two string, text []byte, seed uint64) {
		if len(one)+len(two) > 1000 || len(text) > 4000 {
			return
		}
		m := New()
		m.Add(one, two)
		want := model([]string{one, two}, text)
		if got := string(m.Bytes(text)); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		if got := m.String(string(text)); got != want {
			t.Errorf("a string: %q, want %q", got, want)
		}
		if got := inParts(t, m, text, rand.New(rand.NewPCG(seed, 0))); got != want {
			t.Errorf("in parts: %q, want %q", got, want)
		}
	})
}

// encoded returns what programs may make of text that contains a secret, each with the part
// that must not survive.
func encoded(t *testing.T, before, secret, after string) map[string]string {
	t.Helper()
	whole := before + secret + after
	forms := map[string]string{
		whole:                             secret,
		hex.EncodeToString([]byte(whole)): hex.EncodeToString([]byte(secret)),
		strings.ToUpper(hex.EncodeToString([]byte(whole))): strings.ToUpper(hex.EncodeToString([]byte(secret))),
		url.QueryEscape(whole):                             url.QueryEscape(secret),
		url.PathEscape(whole):                              url.PathEscape(secret),
	}
	for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
		text := encoding.EncodeToString([]byte(whole))
		forms[text] = text[(len(before)*8+5)/6 : (len(before)+len(secret))*8/6]
	}
	for _, html := range []bool{false, true} {
		quote := func(s string) string {
			var b bytes.Buffer
			e := json.NewEncoder(&b)
			e.SetEscapeHTML(html)
			if err := e.Encode(s); err != nil {
				t.Fatal(err)
			}
			return strings.TrimSpace(b.String())
		}
		q := quote(secret)
		forms[quote(whole)] = q[1 : len(q)-1]
	}
	return forms
}

// FuzzForms encodes text with a secret by functions that the package does not use for it.
func FuzzForms(f *testing.F) {
	f.Add("hunter2", "token=", "\n", uint64(1))
	f.Add("pa$$/w+rd=", "<\"", "&", uint64(2))
	f.Add("schlüssel-😀", "é", "", uint64(3))
	f.Add("a\"b\\c\td<e>", "x", "y", uint64(4))
	f.Fuzz(func(t *testing.T, secret, before, after string, seed uint64) {
		secret = strings.TrimSpace(strings.ToValidUTF8(secret, ""))
		before, after = strings.ToValidUTF8(before, ""), strings.ToValidUTF8(after, "")
		if len(secret) < MinLength || len(secret)+len(before)+len(after) > 500 || strings.Contains(secret, "*") {
			return
		}
		m := New()
		m.Add(secret)
		chance := rand.New(rand.NewPCG(seed, 0))
		for text, form := range encoded(t, before, secret, after) {
			for _, got := range []string{m.String(text), inParts(t, m, []byte(text), chance)} {
				if strings.Contains(got, form) {
					t.Errorf("%q survives in %q, made of %q", form, got, text)
				}
			}
		}
	})
}
