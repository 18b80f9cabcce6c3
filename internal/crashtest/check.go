package crashtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Rule is one promise of the host.
type Rule string

// The promises that [Check] checks.
const (
	RuleLost     Rule = "lost"     // every acknowledged request has a run that ends
	RuleTwice    Rule = "twice"    // it has one run only, which ends once
	RuleInvented Rule = "invented" // every run has a request, with the same flow and input
	RuleResult   Rule = "result"   // a run has the output of its flow, and a canceled run is canceled
	RuleRecord   Rule = "record"   // the record in an answer equals the stored one
	RuleEffect   Rule = "effect"   // a succeeded task was executed
	RuleSchedule Rule = "schedule" // a schedule with catch_up = "all" has exactly one run for each time
	RuleOrder    Rule = "order"    // events come in the journal's order, each once
	RuleHistory  Rule = "history"  // the history contains the same ends as the events
)

// Finding is a broken promise.
type Finding struct {
	Rule     Rule
	Marker   string    // of the entry, if known
	Run      string    // if known
	Answered time.Time // when the client got the answer that does not hold
	What     string
}

// At is when the client got its answer, or else when the run was accepted.
func (f Finding) At() time.Time {
	if !f.Answered.IsZero() || len(f.Run) != 26 {
		return f.Answered
	}
	var ms int64
	for _, digit := range f.Run[:10] { // a ULID: 48 bits of milliseconds come first
		ms = ms<<5 | int64(strings.IndexRune("0123456789ABCDEFGHJKMNPQRSTVWXYZ", digit))
	}
	return time.UnixMilli(ms)
}

func (f Finding) String() string {
	return fmt.Sprintf("%s: %s: entry %q, run %q: %s", f.At().Format(time.StampMilli), f.Rule, f.Marker, f.Run, f.What)
}

// lossLimit is how often an attempt may be lost before the host fails the task: such
// a run breaks no promise.
const lossLimit = 5

// Check compares a ledger with the published events and with the effects of tasks. It
// returns every broken promise.
func Check(l *Ledger, a *Archive, effects map[string]int) []Finding {
	c := &checker{archive: a, effects: effects, entries: map[string]Entry{}, byMarker: map[string][]*End{}, byRun: map[string]*End{}, kept: map[string]bool{}, sequels: map[string]int{}}
	c.found = append(append(c.found, l.broken...), a.broken...)
	for _, e := range l.Entries() {
		c.entries[e.Marker] = e
	}
	for _, h := range a.History {
		c.kept[h.Run] = true
		c.kept[h.Trigger.Payload.Marker] = true
	}
	for i := range a.Ends {
		c.end(&a.Ends[i])
	}
	c.children()
	c.followers()
	for _, marker := range slices.Sorted(maps.Keys(c.entries)) {
		c.entry(c.entries[marker])
	}
	for _, run := range slices.Sorted(maps.Keys(a.Open)) {
		c.add(RuleLost, Entry{Run: run}, "the events contain the run's beginning and no end%s", c.butKept(run))
	}
	c.schedule()
	if a.History != nil {
		c.history()
	}
	return c.found
}

type checker struct {
	archive  *Archive
	effects  map[string]int
	entries  map[string]Entry
	byMarker map[string][]*End
	byRun    map[string]*End
	kept     map[string]bool // runs and markers in the history
	sequels  map[string]int  // how many runs a run has started by its end
	found    []Finding
}

func (c *checker) add(rule Rule, e Entry, format string, args ...any) {
	c.found = append(c.found, Finding{Rule: rule, Marker: e.Marker, Run: e.Run, Answered: e.Answered, What: fmt.Sprintf(format, args...)})
}

// end checks one run.
func (c *checker) end(end *End) {
	about := Entry{Marker: end.Trigger.Payload.Marker, Run: end.Run}
	if c.byRun[end.Run] != nil {
		c.add(RuleTwice, about, "the run ends twice")
		return
	}
	c.byRun[end.Run] = end
	for _, t := range end.Tasks {
		if t.Task == "note" && t.State == "succeeded" && c.effects[end.Run+"/note/"] == 0 {
			c.add(RuleEffect, about, "task note has succeeded and was not executed")
		}
	}
	switch end.Trigger.Kind {
	case "schedule":
		c.result(about, end, 0, false)
		return
	case "task":
		c.result(about, end, end.Params.N, false)
		return
	case "flow":
		c.sequels[end.Trigger.Payload.Run]++
		c.result(about, end, end.Trigger.Payload.Output.N, false)
		return
	}
	c.byMarker[about.Marker] = append(c.byMarker[about.Marker], end)
	e, known := c.entries[about.Marker]
	switch {
	case !known:
		c.add(RuleInvented, about, "nobody requested the run")
	case e.Flow != end.Flow || e.N != end.Trigger.Payload.N:
		c.add(RuleInvented, about, "the run is of flow %s with %d, and the request was %s with %d", end.Flow, end.Trigger.Payload.N, e.Flow, e.N)
	default:
		c.result(about, end, e.N, e.Canceled)
	}
}

// children checks that the parent of each run of a sub-flow has ended as well.
func (c *checker) children() {
	for _, run := range slices.Sorted(maps.Keys(c.byRun)) {
		if end := c.byRun[run]; end.Trigger.Kind == "task" && c.byRun[end.Parent.Run] == nil {
			c.add(RuleInvented, Entry{Run: run}, "its parent run is %q, of which no end is known", end.Parent.Run)
		}
	}
}

// followers checks flow triggers: each matching end has started exactly one run.
func (c *checker) followers() {
	for _, run := range slices.Sorted(maps.Keys(c.byRun)) {
		switch end, n := c.byRun[run], c.sequels[run]; {
		case end.followed() && n == 0:
			c.add(RuleLost, Entry{Run: run}, "no run has started when it ended")
		case n > 1:
			c.add(RuleTwice, Entry{Run: run}, "%d runs have started when it ended", n)
		case !end.followed() && n > 0:
			c.add(RuleInvented, Entry{Run: run}, "a run has started after it, and it is %s", end.State)
		}
	}
	for _, run := range slices.Sorted(maps.Keys(c.sequels)) {
		if c.byRun[run] == nil {
			c.add(RuleInvented, Entry{Run: run}, "a run has started after it, and no end of it is known")
		}
	}
}

// result checks how a run has ended.
func (c *checker) result(about Entry, end *End, n int, canceled bool) {
	switch {
	case end.State == "canceled" && end.Flow == "nap":
	case canceled:
		c.add(RuleResult, about, "its cancellation was acknowledged, and it is %s", end.State)
	case end.lost():
	case end.State != "succeeded":
		c.add(RuleResult, about, "it is %s: %s", end.State, end.Text)
	case string(end.Output) != outputOf(end.Flow, n):
		c.add(RuleResult, about, "its output is %s, want %s", end.Output, outputOf(end.Flow, n))
	}
}

// lost reports whether the run has failed because the host was killed too often.
func (e *End) lost() bool {
	return e.State == "failed" && e.Error != nil && e.Error.Outcome == "lost" &&
		slices.ContainsFunc(e.Tasks, func(t TaskRecord) bool { return t.Outcome == "lost" && t.Attempts >= lossLimit })
}

// entry checks the runs of one entry.
func (c *checker) entry(e Entry) {
	ends := c.byMarker[e.Marker]
	switch {
	case len(ends) > 1:
		var ids []string
		for _, end := range ends {
			ids = append(ids, end.Run)
		}
		c.add(RuleTwice, e, "it has %d runs: %s", len(ends), strings.Join(ids, ", "))
	case e.Fate == Refused && len(ends) > 0:
		c.add(RuleInvented, e, "it was refused and has run %s", ends[0].Run)
	case e.Fate != Accepted:
	case len(ends) == 0:
		c.add(RuleLost, e, "%s was acknowledged, and no event contains the end of a run%s", e.Way, c.butKept(e.Run, e.Marker))
	case e.Run != "" && e.Run != ends[0].Run:
		c.add(RuleLost, e, "the acknowledged run is missing, and there is run %s", ends[0].Run)
	case e.Record != nil && !equal(e.Record, ends[0].Text):
		c.add(RuleRecord, e, "answered:\n%s\nrecorded:\n%s", e.Record, ends[0].Text)
	}
}

// butKept reports that the history contains a run that the events do not.
func (c *checker) butKept(names ...string) string {
	for _, name := range names {
		if name != "" && c.kept[name] {
			return "; the history has it"
		}
	}
	return ""
}

// equal reports whether two documents are the same JSON.
func equal(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// schedule checks the times of the scheduled runs.
func (c *checker) schedule() {
	seen := map[time.Time]string{}
	for i := range c.archive.Ends {
		end := &c.archive.Ends[i]
		if end.Trigger.Kind != "schedule" || c.byRun[end.Run] != end {
			continue
		}
		at, about := end.Trigger.Time, Entry{Run: end.Run}
		if seen[at] != "" {
			c.add(RuleSchedule, about, "run %s is for %s too", seen[at], at)
		}
		if !at.Equal(at.Truncate(time.Second)) || at.After(time.Now()) {
			c.add(RuleSchedule, about, "no run is due at %s", at)
		}
		seen[at] = end.Run
	}
	times := slices.SortedFunc(maps.Keys(seen), time.Time.Compare)
	for i := 1; i < len(times); i++ {
		if missing := times[i].Sub(times[i-1])/time.Second - 1; missing > 0 {
			c.add(RuleSchedule, Entry{Run: seen[times[i]]}, "there is no run for %d times after %s, and one for %s", missing, times[i-1], times[i])
		}
	}
}

// history compares the ends in the history with those of the events.
func (c *checker) history() {
	kept := map[string]bool{}
	for _, h := range c.archive.History {
		about := Entry{Marker: h.Trigger.Payload.Marker, Run: h.Run}
		end := c.byRun[h.Run]
		switch {
		case kept[h.Run]:
			c.add(RuleHistory, about, "the history contains the run twice")
		case end != nil && !equal(h.Text, end.Text):
			c.add(RuleHistory, about, "history:\n%s\nevent:\n%s", h.Text, end.Text)
		case end == nil && h.Trigger.Kind != "schedule" && c.entries[about.Marker].Marker == "":
			c.add(RuleInvented, about, "nobody requested the run")
		}
		kept[h.Run] = true
	}
	for run, end := range c.byRun {
		if !kept[run] {
			c.add(RuleHistory, Entry{Marker: end.Trigger.Payload.Marker, Run: run}, "the history does not contain the run")
		}
	}
}
