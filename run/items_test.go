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
