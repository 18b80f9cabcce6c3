package messages_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/flowhost/flowhost/bus/messages"
)

// model is the meaning of a pattern, token by token. A pattern that is not well-formed
// includes nothing.
func model(pattern, subject string) bool {
	p, s := strings.Split(pattern, "."), strings.Split(subject, ".")
	for i, token := range p {
		if token == "" || token == ">" && i < len(p)-1 {
			return false
		}
	}
	if p[len(p)-1] == ">" {
		if len(s) < len(p) {
			return false
		}
		p = p[:len(p)-1]
		s = s[:len(p)]
	}
	return slices.EqualFunc(p, s, func(p, s string) bool { return p == "*" || p == s })
}

// mixed reports tokens with a wildcard and something else, which the server's function takes for
// a wildcard when it comes first, and its subscriptions do not.
func mixed(pattern string) bool {
	for token := range strings.SplitSeq(pattern, ".") {
		if len(token) > 1 && strings.ContainsAny(token, "*>") {
			return true
		}
	}
	return false
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
	if want := model(pattern, subject); got != want {
		t.Errorf("Matches(%q, %q) = %t, and the model has %t", pattern, subject, got, want)
	}
	if server.IsValidSubject(pattern) && !mixed(pattern) && got != server.SubjectMatchesFilter(subject, pattern) {
		t.Errorf("Matches(%q, %q) = %t, and the server has the opposite", pattern, subject, got)
	}
}

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
	matches := 0
	for range 1_000_000 {
		pattern, subject := join(), join()
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
