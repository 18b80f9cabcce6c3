package messages_test

import (
	"flag"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/flowhost/flowhost/bus/messages"
)

// model is the meaning of a pattern as a regular expression. It reports false for one that
// is not well-formed.
func model(pattern string) (*regexp.Regexp, bool) {
	tokens := strings.Split(pattern, ".")
	for i, token := range tokens {
		switch {
		case token == "":
			return nil, false
		case token == "*":
			tokens[i] = `[^.]+`
		case token == ">" && i == len(tokens)-1:
			tokens[i] = `[^.]+(\.[^.]+)*`
		case token == ">":
			return nil, false
		default:
			tokens[i] = regexp.QuoteMeta(token)
		}
	}
	return regexp.MustCompile(`^(?s:` + strings.Join(tokens, `\.`) + `)$`), true
}

// agree holds Matches against the model, and against the server where that has an opinion.
func agree(t *testing.T, pattern, subject string) {
	t.Helper()
	if !server.IsValidLiteralSubject(subject) {
		if messages.CheckSubject(subject) == "" {
			t.Errorf("%q is accepted, and the server takes it for no subject", subject)
		}
		return
	}
	got := messages.Matches(pattern, subject)
	expression, formed := model(pattern)
	want := formed && expression.MatchString(subject)
	if got != want {
		t.Errorf("Matches(%q, %q) = %t, and the model has %t", pattern, subject, got, want)
	}
	if server.IsValidSubject(pattern) && got != server.SubjectMatchesFilter(subject, pattern) {
		t.Errorf("Matches(%q, %q) = %t, and the server has the opposite", pattern, subject, got)
	}
}

var million = flag.Int("subjects", 1_000_000, "pairs of a pattern and a subject in TestMatches")

// TestMatches has a million pairs of a few tokens, so that many match.
func TestMatches(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	words := []string{"a", "a", "b", "ab", "A", "*", "*", ">", "", "a*", ">a", "é", "$", "fh", "_INBOX"}
	join := func() string {
		tokens := make([]string, 1+random.IntN(5))
		for i := range tokens {
			tokens[i] = words[random.IntN(len(words))]
		}
		return strings.Join(tokens, ".")
	}
	compiled := map[string]bool{} // what the model says about the pairs that came before
	matches := 0
	for range *million {
		pattern, subject := join(), join()
		pair := pattern + " " + subject
		if compiled[pair] {
			continue
		}
		compiled[pair] = true
		agree(t, pattern, subject)
		if messages.Matches(pattern, subject) {
			matches++
		}
	}
	if matches < 1000 {
		t.Errorf("%d of the pairs match: the test would prove little", matches)
	}
}

func FuzzMatches(f *testing.F) {
	for _, pattern := range []string{">", "*", "a.*", "a.>", "a.>.b", "a..b", "*.*", "a*.b", "", ".", "a."} {
		for _, subject := range append([]string{"a", "a.b", "a.b.c", "a.*", "a.>"}, refusedSubjects...) {
			f.Add(pattern, subject)
		}
	}
	f.Fuzz(agree)
}

// TestAcceptedSubjects are not to be refused by the rules for others.
func TestAcceptedSubjects(t *testing.T) {
	t.Parallel()
	for _, subject := range []string{
		"a", "orders.priced.7", "a$b", "a.$b", "a._b", "fhx", "x.fh.v1", "Ä.ö", "a-b_c=d:e/f", strings.Repeat("a", 256),
	} {
		if why := messages.CheckSubject(subject); why != "" {
			t.Errorf("%q: %s", subject, why)
		}
	}
}
