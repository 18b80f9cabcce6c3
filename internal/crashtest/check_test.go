package crashtest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// world is a ledger and an archive that fit together: a request that was answered
// with a record, a trigger, a canceled nap and a tick of the clock.
type world struct {
	book    *Ledger
	archive *Archive
	effects map[string]int
}

var answered = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func newWorld() *world {
	w := &world{book: &Ledger{}, archive: &Archive{}, effects: map[string]int{"R1/note/": 1}}
	w.book.Send(Entry{Marker: "m1", Flow: "effect", Way: Request, N: 4})
	w.book.Finish("m1", "R1", ended("R1", "effect", "m1", 4, "succeeded"))
	w.book.Send(Entry{Marker: "m2", Flow: "chain", Way: Trigger, N: 7})
	w.book.Accept("m2", "")
	w.book.Send(Entry{Marker: "m3", Flow: "nap", Way: Request, N: 1})
	w.book.Accept("m3", "R3")
	w.book.Cancel("m3")
	w.book.Send(Entry{Marker: "m4", Flow: "chain", Way: Keyed})
	w.book.Send(Entry{Marker: "m5", Flow: "chain", Way: Request})
	w.book.Refuse("m5")
	w.end(ended("R1", "effect", "m1", 4, "succeeded"))
	w.end(ended("R2", "chain", "m2", 7, "succeeded"))
	w.end(ended("R3", "nap", "m3", 1, "canceled"))
	w.end(ended("R9", "clock", "", 0, "succeeded"))
	w.book.Send(Entry{Marker: "m6", Flow: "flaky", Way: Trigger, N: 2})
	w.book.Accept("m6", "R6")
	w.end(ended("R6", "flaky", "m6", 2, "succeeded"))
	w.end(followed("R7", "R6", 12))
	w.archive.History = slices.Clone(w.archive.Ends)
	return w
}

func (w *world) end(text []byte) {
	end, err := newEnd(text)
	if err != nil {
		panic(err)
	}
	w.archive.Ends = append(w.archive.Ends, end)
}

// ended is the record of a run.
func ended(run, flow, marker string, n int, state string) []byte {
	kind, task, output := "manual", "only", outputOf(flow, n)
	switch {
	case flow == "clock":
		kind = "schedule"
	case flow == "effect":
		task = "note"
	case state != "succeeded":
		output = "null"
	}
	return fmt.Appendf(nil, `{"run":%q,"flow":%q,"state":%q,"output":%s,"trigger":{"kind":%q,"time":%q,"payload":{"marker":%q,"n":%d}},"tasks":[{"task":%q,"state":%q}]}`,
		run, flow, state, output, kind, answered.Format(time.RFC3339), marker, n, task, state)
}

// followed is the record of a run that has started when another one ended.
func followed(run, of string, n int) []byte {
	return fmt.Appendf(nil, `{"run":%q,"flow":"sequel","state":"succeeded","output":%s,"trigger":{"kind":"flow","time":%q,"payload":{"run":%q,"output":{"n":%d}}},"tasks":[]}`,
		run, outputOf("sequel", n), answered.Format(time.RFC3339), of, n)
}

// TestCheck breaks one promise after the other.
func TestCheck(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change func(*world)
		want   []Rule
	}{
		"nothing is broken": {func(*world) {}, nil},
		"an acknowledged message has no run": {func(w *world) {
			w.archive.Ends = slices.Delete(w.archive.Ends, 1, 2)
			w.archive.History = slices.Clone(w.archive.Ends)
		}, []Rule{RuleLost}},
		"no event tells of a run that the history has": {func(w *world) {
			w.archive.Ends = slices.Delete(w.archive.Ends, 1, 2)
		}, []Rule{RuleLost}},
		"a run does not end": {func(w *world) { w.archive.Open = map[string]bool{"R0": true} }, []Rule{RuleLost}},
		"another run than the acknowledged one": {func(w *world) {
			w.archive.Ends[2].Run = "R8"
			w.archive.History[2].Run = "R8"
		}, []Rule{RuleLost}},
		"a message has two runs": {func(w *world) {
			w.end(ended("R8", "chain", "m2", 7, "succeeded"))
			w.archive.History = slices.Clone(w.archive.Ends)
		}, []Rule{RuleTwice}},
		"a run ends twice":   {func(w *world) { w.end(ended("R2", "chain", "m2", 7, "succeeded")) }, []Rule{RuleTwice}},
		"a key has two runs": {func(w *world) { w.book.Accept("m3", "R8") }, []Rule{RuleTwice}},
		"nobody has asked": {func(w *world) {
			w.end(ended("R8", "chain", "m8", 7, "succeeded"))
			w.archive.History = slices.Clone(w.archive.Ends)
		}, []Rule{RuleInvented}},
		"the run of something else": {func(w *world) {
			w.archive.Ends[1].Trigger.Payload.N = 8
		}, []Rule{RuleInvented}},
		"a refused request has a run": {func(w *world) {
			w.end(ended("R8", "chain", "m5", 0, "succeeded"))
			w.archive.History = slices.Clone(w.archive.Ends)
		}, []Rule{RuleInvented}},
		"what had no answer may have a run": {func(w *world) {
			w.end(ended("R8", "chain", "m4", 0, "succeeded"))
			w.archive.History = slices.Clone(w.archive.Ends)
		}, nil},
		"a run is not followed": {func(w *world) {
			w.archive.Ends = slices.Delete(w.archive.Ends, 5, 6)
			w.archive.History = slices.Clone(w.archive.Ends)
		}, []Rule{RuleLost}},
		"a run is followed twice": {func(w *world) {
			w.end(followed("R8", "R6", 12))
			w.archive.History = slices.Clone(w.archive.Ends)
		}, []Rule{RuleTwice}},
		"a run is followed that was canceled": {func(w *world) {
			w.end(followed("R8", "R3", 12))
			w.archive.History = slices.Clone(w.archive.Ends)
		}, []Rule{RuleInvented}},
		"a run follows nothing": {func(w *world) {
			w.end(followed("R8", "R0", 12))
			w.archive.History = slices.Clone(w.archive.Ends)
		}, []Rule{RuleInvented}},
		"a wrong result": {func(w *world) { w.archive.Ends[1].Output = json.RawMessage(`{"n":9}`) }, []Rule{RuleResult}},
		"a failed run":   {func(w *world) { w.archive.Ends[1].State = "failed" }, []Rule{RuleResult}},
		"a run that was given up after five losses": {func(w *world) {
			end := &w.archive.Ends[1]
			end.State = "failed"
			end.Tasks[0].Outcome, end.Tasks[0].Attempts = "lost", 5
			if err := json.Unmarshal([]byte(`{"error":{"outcome":"lost"}}`), &end.Record); err != nil {
				panic(err)
			}
		}, nil},
		"a cancellation without effect": {func(w *world) {
			w.archive.Ends[2].State, w.archive.Ends[2].Output = "succeeded", json.RawMessage(`{"n":1}`)
		}, []Rule{RuleResult}},
		"another record than the answer contained": {func(w *world) {
			text := ended("R1", "effect", "m1", 5, "succeeded")
			w.archive.Ends[0].Text, w.archive.History[0].Text = text, text
		}, []Rule{RuleRecord}},
		"a task that was not executed": {func(w *world) { w.effects = nil }, []Rule{RuleEffect}},
		"two runs for one time": {func(w *world) {
			w.end(ended("R8", "clock", "", 0, "succeeded"))
			w.archive.History = slices.Clone(w.archive.Ends)
		}, []Rule{RuleSchedule}},
		"a time without a run": {func(w *world) {
			w.end(ended("R8", "clock", "", 0, "succeeded"))
			later := &w.archive.Ends[len(w.archive.Ends)-1]
			later.Trigger.Time = later.Trigger.Time.Add(2 * time.Second)
			w.archive.History = slices.Clone(w.archive.Ends)
		}, []Rule{RuleSchedule}},
		"a run at no time": {func(w *world) {
			w.archive.Ends[3].Trigger.Time = answered.Add(time.Millisecond)
		}, []Rule{RuleSchedule}},
		"the history misses a run":    {func(w *world) { w.archive.History = w.archive.History[1:] }, []Rule{RuleHistory}},
		"the history has a run twice": {func(w *world) { w.archive.History = append(w.archive.History, w.archive.History[0]) }, []Rule{RuleHistory}},
		"the history says otherwise":  {func(w *world) { w.archive.History[1].Text = w.archive.History[0].Text }, []Rule{RuleHistory}},
		"the history has a run more": {func(w *world) {
			w.end(ended("R8", "chain", "m8", 0, "succeeded"))
			w.archive.History, w.archive.Ends = w.archive.Ends, w.archive.Ends[:len(w.archive.Ends)-1]
		}, []Rule{RuleInvented}},
		"without a history":            {func(w *world) { w.archive.History = nil }, nil},
		"what the archive has noticed": {func(w *world) { w.archive.broke(RuleOrder, "R1", "out of order") }, []Rule{RuleOrder}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			test.change(w)
			var got []Rule
			for _, f := range Check(w.book, w.archive, w.effects) {
				got = append(got, f.Rule)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("found %v, want %v", got, test.want)
			}
		})
	}
}

// TestOrder tells events to an archive.
func TestOrder(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		events string // "<id> <kind> <task> <attempt>", one a line
		want   int    // findings
	}{
		"a life":                  {"0-1-0-a submitted\n0-1-1-a started\n0-2-0-a attempt_started a 1\n0-3-0-a attempt_finished a 1\n0-3-1-a attempt_started a 2\n0-4-0-a attempt_finished a 2\n0-4-1-a finished", 0},
		"an event twice":          {"0-1-0-a submitted\n0-1-0-a submitted", 2},
		"an event too late":       {"0-2-0-a submitted\n0-1-0-a started", 1},
		"no beginning":            {"0-2-0-a started", 1},
		"something after the end": {"0-1-0-a submitted\n0-1-1-a finished\n0-2-0-a attempt_started a 1", 1},
		"two ends":                {"0-1-0-a submitted\n0-1-1-a finished\n0-2-0-a finished", 1},
		"an attempt missing":      {"0-1-0-a submitted\n0-2-0-a attempt_started a 2", 1},
		"an attempt's end twice":  {"0-1-0-a submitted\n0-2-0-a attempt_started a 1\n0-2-1-a attempt_finished a 1\n0-2-2-a attempt_finished a 1", 1},
		"an attempt's end alone":  {"0-1-0-a submitted\n0-2-1-a attempt_finished a 1", 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newArchive()
			for line := range strings.Lines(test.events) {
				e := event{Run: "R1", Record: ended("R1", "chain", "m1", 0, "succeeded")}
				fmt.Sscan(line, &e.ID, &e.Kind, &e.Task, &e.Attempt) // fewer words leave the rest empty
				if err := a.addEvent(e); err != nil {
					t.Fatal(err)
				}
			}
			if len(a.broken) != test.want {
				t.Errorf("found %v, want %d findings", a.broken, test.want)
			}
		})
	}
}

// TestReset tells events to an archive that come again, or are missing, after a reset.
func TestReset(t *testing.T) {
	t.Parallel()
	one := func(id, kind, run string) json.RawMessage {
		record := ended(run, "chain", "m"+run, 0, "succeeded")
		return fmt.Appendf(nil, `{"id":%q,"kind":%q,"flow":"chain","run":%q,"at":%q,"record":%s}`, id, kind, run, answered.Format(time.RFC3339), record)
	}
	life := func(first int, run string) []json.RawMessage {
		return []json.RawMessage{one(fmt.Sprintf("0-%d-0-a", first), "submitted", run), one(fmt.Sprintf("0-%d-0-a", first+1), "finished", run)}
	}
	first := page{Events: slices.Concat(life(1, "R1"), life(3, "R2"))}
	for name, test := range map[string]struct {
		then []json.RawMessage // after a reset
		ends int
		want int // findings
	}{
		"all come again":                     {slices.Concat(life(1, "R1"), life(3, "R2")), 2, 0},
		"the journal has lost its end":       {life(1, "R1"), 1, 1},
		"it goes on with others":             {slices.Concat(life(1, "R1"), life(3, "R3")), 2, 1},
		"some are missing":                   {life(5, "R3"), 3, 0},
		"the beginning of a run is missing":  {[]json.RawMessage{one("0-9-0-a", "finished", "R3")}, 3, 0},
		"a run ends twice after the reset":   {slices.Concat(life(1, "R1"), life(3, "R1")), 2, 3},
		"an event comes twice after a reset": {slices.Concat(life(1, "R1"), life(1, "R3")), 2, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newArchive()
			for _, p := range []page{first, {Reset: true, Events: test.then}} {
				if _, err := a.add(p); err != nil {
					t.Fatal(err)
				}
			}
			a.takeBack()
			if len(a.Ends) != test.ends || len(a.broken) != test.want {
				t.Errorf("%d ends and findings %v, want %d and %d", len(a.Ends), a.broken, test.ends, test.want)
			}
		})
	}
}

func TestFindingAt(t *testing.T) {
	t.Parallel()
	f := Finding{Run: "01M7ZHBGDNSQKMZVWXRS61VMMM"}
	if got := f.At().UTC(); got.Format(time.DateTime) != "2026-11-21 17:09:38" {
		t.Errorf("the run was accepted at %s", got)
	}
	if f.Answered = answered; !f.At().Equal(answered) {
		t.Errorf("answered at %s", f.At())
	}
}
