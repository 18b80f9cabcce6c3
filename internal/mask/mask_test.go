package mask_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/flowhost/flowhost/internal/mask"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func masker(values ...string) *mask.Masker {
	m := mask.New()
	m.Add(values...)
	return m
}

func TestForms(t *testing.T) {
	t.Parallel()
	const secret = `s3cr3t/<Ünï>&"\ ?+=😀`
	m := masker(secret, "hunter2hunter2")
	goJSON, err := json.Marshal(secret)
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct{ name, text, want string }{
		{"as it is", "token " + secret + ".", "token ***."},
		{"twice", secret + " and " + secret, "*** and ***"},
		{"hex", hex.EncodeToString([]byte(secret)), "***"},
		{"upper hex", "0x" + strings.ToUpper(hex.EncodeToString([]byte(secret))), "0x***"},
		{"base64", base64.StdEncoding.EncodeToString([]byte(secret)), "***"},
		{"base64 without padding", base64.RawStdEncoding.EncodeToString([]byte(secret)) + ";", "***;"},
		{"base64 for URLs", base64.URLEncoding.EncodeToString([]byte(secret)), "***"},
		{"query", "?q=" + url.QueryEscape(secret) + "&a=1", "?q=***&a=1"},
		{"query in lower case", strings.ToLower(url.QueryEscape("hunter2hunter2")), "***"},
		{"path", "/a/" + url.PathEscape(secret) + "/b", "/a/***/b"},
		{"whole path", (&url.URL{Path: "/a/" + secret + "/b"}).EscapedPath(), "/a/***/b"},
		{"encodeURIComponent", "s3cr3t%2F%3C%C3%9Cn%C3%AF%3E%26%22%5C%20%3F%2B%3D%F0%9F%98%80", "***"},
		{"the same in lower case", "s3cr3t%2f%3c%c3%9cn%c3%af%3e%26%22%5c%20%3f%2b%3d%f0%9f%98%80", "***"},
		{"JSON of Go", string(goJSON), `"***"`},
		{"JSON of JavaScript", `"s3cr3t/<Ünï>&\"\\ ?+=😀"`, `"***"`},
		{"JSON of Python", `"s3cr3t/<\u00dcn\u00ef>&\"\\ ?+=\ud83d\ude00"`, `"***"`},
		{"JSON of Python in upper case", `"s3cr3t/<\u00DCn\u00EF>&\"\\ ?+=\uD83D\uDE00"`, `"***"`},
		{"JSON of PHP", `"s3cr3t\/<\u00dcn\u00ef>&\"\\ ?+=\ud83d\ude00"`, `"***"`},
		{"JSON with an escaped slash", `"s3cr3t\/<Ünï>&\"\\ ?+=😀"`, `"***"`},
		{"JSON with escapes of all punctuation", `"s3cr3t\u002f\u003c\u00dcn\u00ef\u003e\u0026\u0022\u005c\u0020\u003f\u002b\u003d\ud83d\ude00"`, `"***"`},
		{"nothing", "hunter2hunter and s3cr3t", "hunter2hunter and s3cr3t"},
		{"two in one another", "hunter2hunter2hunter2", "***"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := m.String(test.text); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
			before := []byte(test.text)
			if got := string(m.Bytes(before)); got != test.want || string(before) != test.text {
				t.Errorf("bytes: %q, want %q; given %q", got, test.want, before)
			}
			var out bytes.Buffer
			w := m.Writer(&out)
			for i := range len(test.text) {
				if _, err := w.Write([]byte{test.text[i]}); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.Close(); err != nil || out.String() != test.want {
				t.Errorf("a byte at a time: %q, %v, want %q", out.String(), err, test.want)
			}
		})
	}
}

// TestBase64WithinText looks for the characters that are determined by the secret, wherever
// it is within what was encoded.
func TestBase64WithinText(t *testing.T) {
	t.Parallel()
	const secret = "correct-horse-battery"
	m := masker(secret)
	for before := range 7 {
		for after := range 7 {
			text := strings.Repeat("<", before) + secret + strings.Repeat(">", after)
			for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
				got := m.String(encoding.EncodeToString([]byte(text)))
				// At most the characters that share bits with what is around the secret remain.
				if kept := len(strings.ReplaceAll(got, "***", "")); !strings.Contains(got, "***") || kept > (before*8+5)/6+(after*8+5)/6+len("x==") {
					t.Errorf("%d before, %d after: %s", before, after, got)
				}
			}
		}
	}
	if got, want := m.String("Basic "+base64.StdEncoding.EncodeToString([]byte("u:"+secret))), "Basic dTp***"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestParts(t *testing.T) {
	t.Parallel()
	key := "-----BEGIN KEY-----\r\nMIIEowIBAAKCAQEA7bq\r\nabc\r\n-----END KEY-----\n"
	m := masker("postgres://loader:p%40ss-w0rd@db.internal/x?sslmode=require", key, "  padded-token \n", "short")
	m.Add("loader:p@ss:w/rd-2@tcp(db.internal:3306)/x?tls=true", "host=db.internal user=loader password='p4ssw0rd-3' dbname=x")
	for text, want := range map[string]string{
		"p@ss:w/rd-2, p4ssw0rd-3":              "***, ***",
		"password p@ss-w0rd refused":           "password *** refused",
		"p%40ss-w0rd":                          "***",
		"user loader of db.internal":           "user loader of db.internal",
		"a MIIEowIBAAKCAQEA7bq b":              "a *** b",
		"abc":                                  "abc",
		strings.TrimSpace(key):                 "***",
		"padded-token":                         "***",
		"a short value is found in many texts": "a short value is found in many texts",
	} {
		if got := m.String(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestLongValues(t *testing.T) {
	t.Parallel()
	var numbers strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&numbers, "%d;", i)
	}
	long := numbers.String()
	m := masker(long)
	for _, test := range []struct{ text, want string }{
		{"<" + long + ">", "<***>"},
		{"<" + hex.EncodeToString([]byte(long)) + ">", "<***>"},
		{"<" + long[:63], "<" + long[:63]},
		{"<" + long[:1000], "<***"},
	} {
		if got := m.String(test.text); got != test.want {
			t.Errorf("%q, want %q", got, test.want)
		}
		var out bytes.Buffer
		w := m.Writer(&out)
		for text := test.text; len(text) > 0; text = text[min(7, len(text)):] {
			if _, err := io.WriteString(w, text[:min(7, len(text))]); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); got != test.want {
			t.Errorf("written in parts: %q, want %q", got, test.want)
		}
	}
}

// TestWithoutValues counts allocations, so it runs alone.
func TestWithoutValues(t *testing.T) {
	m := masker("", "abc", "12345")
	text := []byte("12345 abc")
	var out bytes.Buffer
	w := m.Writer(&out)
	if allocated := testing.AllocsPerRun(100, func() {
		out.Reset()
		if m.String("12345 abc") != "12345 abc" || &m.Bytes(text)[0] != &text[0] || &m.JSON(text)[0] != &text[0] {
			t.Error("the text is not returned itself")
		}
		if n, err := w.Write(text); n != len(text) || err != nil || out.Len() != n {
			t.Error(n, err, out.Len())
		}
	}); allocated != 0 {
		t.Errorf("%v allocations", allocated)
	}
}

// TestAbsentValues counts allocations, so it runs alone.
func TestAbsentValues(t *testing.T) {
	m := masker("correct-horse-battery")
	text := []byte(`{"a":["correct horse battery",1]}`)
	if allocated := testing.AllocsPerRun(100, func() {
		if &m.Bytes(text)[0] != &text[0] || &m.JSON(text)[0] != &text[0] {
			t.Error("the text is not returned itself")
		}
	}); allocated != 0 {
		t.Errorf("%v allocations", allocated)
	}
}

func TestRotation(t *testing.T) {
	t.Parallel()
	const count = 1000 // that are kept
	m := mask.New()
	m.Add("in-use-always", "rotated-away")
	var later []string
	for i := range count - 2 {
		later = append(later, fmt.Sprintf("value-%04d", i))
	}
	m.Add(append(later, "in-use-always")...)
	if got := m.String("rotated-away in-use-always value-0000"); got != "*** *** ***" {
		t.Errorf("%q", got)
	}
	m.Add("one more than is kept")
	if got := m.String("rotated-away in-use-always value-0000"); got != "rotated-away *** ***" {
		t.Errorf("%q", got)
	}
}

func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	m := masker("the-first-value")
	var all sync.WaitGroup
	for worker := range 4 {
		all.Go(func() {
			var out bytes.Buffer
			w := m.Writer(&out)
			for i := range 50 {
				value := fmt.Sprintf("value-%d-%d", worker, i)
				m.Add(value)
				if got := m.String("the-first-value " + value); got != "*** ***" {
					t.Errorf("%q", got)
				}
				if _, err := fmt.Fprintln(w, value); err != nil {
					t.Error(err)
				}
			}
			if got, want := out.String(), strings.Repeat("***\n", 50); got != want {
				t.Errorf("%q", got)
			}
		})
	}
	all.Wait()
}
