package simulate

import (
	"fmt"
	"testing"
	"time"

	"github.com/flowhost/flowhost/internal/flowsim"
	"github.com/flowhost/flowhost/run"
)

func TestBar(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	ok, failed := run.OutcomeSucceeded, run.OutcomeFailed
	attempt := func(from, to time.Duration, how run.Outcome) flowsim.Attempt {
		return flowsim.Attempt{From: from, To: to, Outcome: how}
	}
	for name, c := range map[string]struct {
		line  flowsim.Line
		whole time.Duration
		want  string
	}{
		"all of it":          {flowsim.Line{Began: true, To: 10 * ms, Attempts: []flowsim.Attempt{attempt(0, 10*ms, ok)}}, 10 * ms, "██████████"},
		"at the end":         {flowsim.Line{Began: true, Ready: 9 * ms, To: 10 * ms, Attempts: []flowsim.Attempt{attempt(9*ms, 10*ms, ok)}}, 10 * ms, "         █"},
		"no time at the end": {flowsim.Line{Began: true, Ready: 10 * ms, To: 10 * ms, Attempts: []flowsim.Attempt{attempt(10*ms, 10*ms, ok)}}, 10 * ms, "         █"},
		"retried": {flowsim.Line{Began: true, Ready: 1 * ms, To: 8 * ms, Attempts: []flowsim.Attempt{attempt(2*ms, 4*ms, failed), attempt(6*ms, 8*ms, ok)}},
			10 * ms, " ·▒▒··██  "},
		"success goes over failure": {flowsim.Line{Began: true, To: 2 * ms, Attempts: []flowsim.Attempt{attempt(0, ms, failed), attempt(ms, 2*ms, ok)}}, 1000 * ms, "█         "},
		"a fan-out":                 {flowsim.Line{Began: true, Fan: true, Ready: ms, From: 3 * ms, To: 9 * ms}, 10 * ms, " ··────── "},
		"a run without duration":    {flowsim.Line{Began: true, Attempts: []flowsim.Attempt{attempt(0, 0, ok)}}, 0, "█         "},
		"skipped":                   {flowsim.Line{Ready: 5 * ms, To: 5 * ms}, 10 * ms, "          "},
	} {
		if got := bar(&c.line, c.whole, 10); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestParseStated(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"2s": "2s", "0s": "0s", "fail:0": "0", "fail:1": "1", "fail:0.25": "0.25", "waits:0": "waits 0", "waits:0.9": "waits 0.9",
		"": "error", "-2s": "error", "2": "error", "fail:": "error", "fail:1.1": "error", "fail:-0.1": "error", "fail:NaN": "error", "fail": "error", "waits:": "error", "waits:1.1": "error", "waits:2s": "error",
	} {
		var s flowsim.Stated
		got := "error"
		switch err := parseStated(&s, text); {
		case err != nil:
		case s.Takes != nil:
			got = s.Takes.String()
		case s.Waits != nil:
			got = fmt.Sprint("waits ", *s.Waits)
		case s.Fails != nil:
			got = fmt.Sprint(*s.Fails)
		}
		if got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}
