package secrets

import (
	"strings"
	"testing"
)

func TestParseLines(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"A=x":                       "x",
		" export A = x y # comment": "x y",
		"A=x#y":                     "x#y",
		"\n# A=y\r\nA=x\r\n":        "x",
		"A='x\"$\\n' # comment":     `x"$\n`,
		`A="x\n\"\\\$\t"`:           "x\n\"\\$\t",
		"A=":                        "",
		"A==":                       "=",
		"A=x'y":                     "x'y",
	} {
		if got, err := parseLines(text); err != nil || len(got) != 1 || got["A"] != want {
			t.Errorf("%q: %q, %v, want %q", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"A":             "line 1: it is not NAME=value",
		"B=1\n=x":       "line 2: it is not NAME=value",
		"A B=x":         "line 1: it is not NAME=value",
		"A='x":          "line 1: the quote",
		`A="x`:          "line 1: the quote",
		`A="x" y`:       "line 1: the quote",
		`A="x\`:         "line 1: the quote",
		`A="\x"`:        "line 1: the escapes",
		"A=1\nB=2\nA=3": "line 3: the name was there before",
	} {
		if got, err := parseLines(text); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %q, %v, want %q", text, got, err, want)
		}
	}
}

// FuzzMember reads arbitrary content: no failure quotes it, and what can be written as a
// line is read as it was.
func FuzzMember(f *testing.F) {
	f.Add("A", "x")
	f.Add("A", `"\`)
	f.Add("{", "'")
	f.Add("export A", "x # y")
	f.Fuzz(func(t *testing.T, name, value string) {
		const secret = "pl4nted"
		for _, content := range []string{value, name + "=" + value, secret + value, "{" + secret + value, name + "=\"" + secret + value, `{"k":` + value + secret} {
			if _, failed := member([]byte(content), "k"); failed != nil && strings.Contains(failed.text+failed.cause, secret) {
				t.Errorf("%q: %+v", content, failed)
			}
		}
		quoted := `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", `\r`).Replace(value) + `"`
		if got, failed := member([]byte("# line\nNAME="+quoted+"\n"), "NAME"); failed != nil || got != value {
			t.Errorf("%s: %q, %+v, want %q", quoted, got, failed, value)
		}
	})
}
