package torture

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

// The promises that [Check] looks at.
const (
	RuleLost     Rule = "lost"     // what was acknowledged has a run, and it ends
	RuleTwice    Rule = "twice"    // it has one run, and that ends once
	RuleInvented Rule = "invented" // a run is of something that was asked for, as it was asked for
	RuleResult   Rule = "result"   // a run gives what its flow computes, and a canceled one is canceled
	RuleTold     Rule = "told"     // the record that was told is the one that is kept
	RuleEffect   Rule = "effect"   // a task that has succeeded was executed
	RuleSchedule Rule = "schedule" // a schedule that catches up with everything has one run for each time, and no others
	RuleOrder    Rule = "order"    // events come in the journal's order, each once
	RuleHistory  Rule = "history"  // the history holds the ends that the events tell
)

// Finding is a promise that was broken.
type Finding struct {
	Rule   Rule
	Marker string    // of the entry, if it is about one
	Run    string    // if one is known
	Told   time.Time // when the client was told what does not hold
	What   string
}

// At is when the client was told, or, when it was not, when the run was accepted.
func (f Finding) At() time.Time {
	if !f.Told.IsZero() || len(f.Run) != 26 {
		return f.Told
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

// lossLimit is how often an attempt may be lost before the host gives its task up:
// a run that ends so is no breach.
const lossLimit = 5

// Check lays a ledger beside what was published and the effects that were left.
// It gives every promise that does not hold.
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
		c.add(RuleLost, Entry{Run: run}, "events tell of the run's beginning and of no end%s", c.butKept(run))
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
	sequels  map[string]int  // how many runs have followed a run
	found    []Finding
}

func (c *checker) add(rule Rule, e Entry, format string, args ...any) {
	c.found = append(c.found, Finding{Rule: rule, Marker: e.Marker, Run: e.Run, Told: e.Told, What: fmt.Sprintf(format, args...)})
}

// end looks at a run for itself.
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
		c.add(RuleInvented, about, "nobody has asked for the run")
	case e.Flow != end.Flow || e.N != end.Trigger.Payload.N:
		c.add(RuleInvented, about, "the run is of flow %s with %d, and %s with %d was asked for", end.Flow, end.Trigger.Payload.N, e.Flow, e.N)
	default:
		c.result(about, end, e.N, e.Canceled)
	}
}

// children looks at what the runs of sub-flows belong to: each is of a run that has
// ended as well.
func (c *checker) children() {
	for _, run := range slices.Sorted(maps.Keys(c.byRun)) {
		if end := c.byRun[run]; end.Trigger.Kind == "task" && c.byRun[end.Parent.Run] == nil {
			c.add(RuleInvented, Entry{Run: run}, "it is a run of a sub-flow of %q, of which no end is known", end.Parent.Run)
		}
	}
}

// followers looks at the runs that start when others have ended: one for each.
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

// result looks at how a run has ended.
func (c *checker) result(about Entry, end *End, n int, canceled bool) {
	switch {
	case end.State == "canceled" && end.Flow == "nap":
	case canceled:
		c.add(RuleResult, about, "its cancellation was acknowledged, and it is %s", end.State)
	case end.lost():
	case end.State != "succeeded":
		c.add(RuleResult, about, "it is %s: %s", end.State, end.Text)
	case string(end.Output) != outputOf(end.Flow, n):
		c.add(RuleResult, about, "it gives %s, want %s", end.Output, outputOf(end.Flow, n))
	}
}

// lost reports whether the run has failed because the host was ended too often.
func (e *End) lost() bool {
	return e.State == "failed" && e.Error != nil && e.Error.Outcome == "lost" &&
		slices.ContainsFunc(e.Tasks, func(t TaskRecord) bool { return t.Outcome == "lost" && t.Attempts >= lossLimit })
}

// entry looks at what has become of something that was asked for.
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
		c.add(RuleLost, e, "%s was acknowledged, and no event tells of a finished run%s", e.Way, c.butKept(e.Run, e.Marker))
	case e.Run != "" && e.Run != ends[0].Run:
		c.add(RuleLost, e, "the run that was told is not there, and run %s is", ends[0].Run)
	case e.Record != nil && !equal(e.Record, ends[0].Text):
		c.add(RuleTold, e, "told:\n%s\nrecorded:\n%s", e.Record, ends[0].Text)
	}
}

// butKept says it when the history knows better than the events.
func (c *checker) butKept(names ...string) string {
	for _, name := range names {
		if name != "" && c.kept[name] {
			return "; the history has it"
		}
	}
	return ""
}

// equal reports whether two texts are the same JSON.
func equal(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// schedule looks at the times for which there are runs.
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

// history compares the ends in the history with those that the events told.
func (c *checker) history() {
	kept := map[string]bool{}
	for _, h := range c.archive.History {
		about := Entry{Marker: h.Trigger.Payload.Marker, Run: h.Run}
		end := c.byRun[h.Run]
		switch {
		case kept[h.Run]:
			c.add(RuleHistory, about, "the run is there twice")
		case end != nil && !equal(h.Text, end.Text):
			c.add(RuleHistory, about, "history:\n%s\nevent:\n%s", h.Text, end.Text)
		case end == nil && h.Trigger.Kind != "schedule" && c.entries[about.Marker].Marker == "":
			c.add(RuleInvented, about, "nobody has asked for the run")
		}
		kept[h.Run] = true
	}
	for run, end := range c.byRun {
		if !kept[run] {
			c.add(RuleHistory, Entry{Marker: end.Trigger.Payload.Marker, Run: run}, "the run is not there")
		}
	}
}
