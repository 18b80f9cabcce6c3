package run

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestItemsHaveTheirOrderAndKeys(t *testing.T) {
	t.Parallel()
	for all, want := range map[string][]Item{
		`[]`:               {},
		`{}`:               {},
		`[7, {"a": null}]`: {{Key: "0", Index: 0, Value: json.RawMessage(`7`)}, {Key: "1", Index: 1, Value: json.RawMessage(`{"a": null}`)}},
		`{"b":1,"a":"x"}`:  {{Key: "a", Index: 0, Value: json.RawMessage(`"x"`), Named: true}, {Key: "b", Index: 1, Value: json.RawMessage(`1`), Named: true}},
	} {
		got, err := Items(json.RawMessage(all))
		if err != nil {
			t.Errorf("%s: %v", all, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", all, diff)
		}
	}
	for _, all := range []string{``, `null2`, `3`, `{"a":}`, `[1`} {
		if got, err := Items(json.RawMessage(all)); err == nil {
			t.Errorf("%q gives %v", all, got)
		}
	}
}

func TestAFanOutGathersItsOutputs(t *testing.T) {
	t.Parallel()
	for items, want := range map[string]string{
		`["x","y","z"]`:        `[{"n":1},null,null]`,
		`{"0":1,"1":2,"a<":3}`: `{"0":{"n":1},"1":null,"a<":null}`,
		`[]`:                   `[]`,
		`{}`:                   `{}`,
	} {
		whole := TaskRef{Task: "copy"}
		first, second := TaskRef{Task: "copy", Key: "0"}, TaskRef{Task: "copy", Key: "1"}
		story := []EventData{&Submitted{Flow: "f"}, &Started{}, &TaskExpanded{TaskRef: whole, Items: json.RawMessage(items)}}
		if len(items) > 2 {
			story = append(story,
				&AttemptStarted{TaskRef: second, Attempt: 1},
				&AttemptStarted{TaskRef: first, Attempt: 1},
				&AttemptFinished{TaskRef: second, Attempt: 1, Outcome: OutcomeFailed, Failure: &Failure{}},
				&AttemptFinished{TaskRef: first, Attempt: 1, Outcome: OutcomeSucceeded, Output: json.RawMessage(`{"n":1}`)})
		}
		s := NewShard()
		for _, data := range append(story, &TaskEnded{TaskRef: whole, State: Succeeded}) {
			if _, err := s.Apply(Event{Run: "r", At: t0, Data: data}); err != nil {
				t.Fatal(err)
			}
		}
		r := s.Runs["r"]
		if got := string(r.Gather(r.Task(whole))); got != want {
			t.Errorf("%s gathers %s, want %s", items, got, want)
		}
	}
}

// The items are counted without decoding them, and by state in a record.
func TestItemsAreCounted(t *testing.T) {
	t.Parallel()
	for all, want := range map[string]int{
		`[]`: 0, ` [ ] `: 0, `{}`: 0, `[[]]`: 1, `[{}]`: 1, `[null]`: 1, `[""]`: 1, `[1,2]`: 2, `["a,b\",]",[1,2],{"x":[3,4]}]`: 3, `{"a,":1,"b":[1,2]}`: 2,
	} {
		items, err := Items(json.RawMessage(all))
		if got := CountItems(json.RawMessage(all)); got != want || err != nil || len(items) != want {
			t.Errorf("%s: %d items, decoded %d, %v; want %d", all, got, len(items), err, want)
		}
	}
	s := NewShard()
	for _, data := range []EventData{
		&Submitted{Flow: "f"}, &Started{},
		&TaskExpanded{TaskRef: TaskRef{Task: "copy"}, Items: json.RawMessage(`["a","b","c","d","e"]`)},
		&AttemptStarted{TaskRef: TaskRef{Task: "copy", Key: "0"}, Attempt: 1},
		&AttemptStarted{TaskRef: TaskRef{Task: "copy", Key: "1"}, Attempt: 1},
		&AttemptStarted{TaskRef: TaskRef{Task: "copy", Key: "2"}, Attempt: 1},
		&AttemptFinished{TaskRef: TaskRef{Task: "copy", Key: "0"}, Attempt: 1, Outcome: OutcomeSucceeded},
		&AttemptFinished{TaskRef: TaskRef{Task: "copy", Key: "1"}, Attempt: 1, Outcome: OutcomeTrapped, Failure: &Failure{}},
	} {
		if _, err := s.Apply(Event{Run: "r", At: t0, Data: data}); err != nil {
			t.Fatal(err)
		}
	}
	got := s.Runs["r"].Record(nil).Tasks[0].Counts
	if diff := cmp.Diff(&ItemCounts{Total: 5, Waiting: 2, Running: 1, Succeeded: 1, Failed: 1}, got); diff != "" || got.Done() != 2 {
		t.Errorf("%d done (-want +got):\n%s", got.Done(), diff)
	}
}

// A fan-out cannot end before its items.
func TestAFanOutWaitsForItsItems(t *testing.T) {
	t.Parallel()
	s := NewShard()
	whole, item := TaskRef{Task: "copy"}, TaskRef{Task: "copy", Key: "0"}
	apply := func(data EventData) error {
		_, err := s.Apply(Event{Run: "r", At: t0, Data: data})
		return err
	}
	end := &TaskEnded{TaskRef: whole, State: Succeeded}
	for _, data := range []EventData{&Submitted{Flow: "f"}, &Started{}} {
		if err := apply(data); err != nil {
			t.Fatal(err)
		}
	}
	if apply(&AttemptStarted{TaskRef: item, Attempt: 1}) == nil {
		t.Error("an item starts before its fan-out")
	}
	for _, data := range []EventData{&TaskExpanded{TaskRef: whole, Items: json.RawMessage(`[1,2]`)}, &AttemptStarted{TaskRef: item, Attempt: 1}} {
		if err := apply(data); err != nil {
			t.Fatal(err)
		}
	}
	if apply(end) == nil {
		t.Error("the fan-out ends while an item goes on")
	}
	if err := apply(&AttemptFinished{TaskRef: item, Attempt: 1, Outcome: OutcomeSucceeded}); err != nil {
		t.Fatal(err)
	}
	if err := apply(end); err != nil {
		t.Error(err)
	}
	if apply(&AttemptStarted{TaskRef: TaskRef{Task: "copy", Key: "1"}, Attempt: 1}) == nil {
		t.Error("an item starts after its fan-out has ended")
	}
}
