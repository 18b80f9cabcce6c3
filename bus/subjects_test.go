package bus_test

import (
	"strings"
	"testing"
	"unicode"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/run"
)

func TestSubjects(t *testing.T) {
	t.Parallel()
	for got, want := range map[string]string{
		bus.JournalSubject(3):                              "fh.v1.journal.3",
		bus.TriggerSubject("billing/charge"):               "fh.v1.trigger.billing/charge",
		bus.RunSubject("a"):                                "fh.v1.api.run.a",
		bus.DeadLetterSubject("a"):                         "fh.v1.deadletter.a",
		bus.EventSubject("a", run.ID("01X"), "task_ended"): "fh.v1.run.a.01X.task_ended",
		bus.EventsSubject("a", run.ID("01X")):              "fh.v1.events.a.01X",
		bus.StreamSource("ORDERS", "a/b", "new"):           "stream/ORDERS/a/b/new",
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestCheckToken(t *testing.T) {
	t.Parallel()
	for token, ok := range map[string]bool{
		"a": true, "billing/charge": true, "größe-1_x": true,
		"": false, "a.b": false, "*": false, "a*": false, ">": false, "a b": false, "a\tb": false, "a\r\nb": false, "\x00": false, "\xff": false,
	} {
		if err := bus.CheckToken(token); (err == nil) != ok {
			t.Errorf("CheckToken(%q) = %v", token, err)
		}
	}
}

func TestCheckSubject(t *testing.T) {
	t.Parallel()
	for subject, ok := range map[string]bool{
		"orders": true, "orders.new": true, "orders.*.done": true, "orders.>": true, ">": false, "*": false, "*.x": false, "fh.v1.run.>": false, "$SYS.>": false, "_INBOX.>": false,
		"": false, ".": false, "a..b": false, "a.": false, ".a": false, "a.>.b": false, "a b": false, "a.b*": false,
	} {
		if err := bus.CheckSubject(subject); (err == nil) != ok {
			t.Errorf("CheckSubject(%q) = %v", subject, err)
		}
	}
}

func FuzzCheckSubject(f *testing.F) {
	for _, seed := range []string{"orders.*", "a.>", "", "a b", "fh.v1.run.>"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, subject string) {
		if bus.CheckSubject(subject) != nil {
			return
		}
		if strings.IndexFunc(subject, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) >= 0 {
			t.Errorf("%q would end the protocol's line or argument", subject)
		}
		if strings.Contains(subject, "..") || strings.HasPrefix(subject, ".") || strings.HasSuffix(subject, ".") {
			t.Errorf("%q has an empty token", subject)
		}
	})
}
