package run

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// The writer by hand and the encoder by reflection give the same bytes.
func TestRecordJSONIsThatOfItsFields(t *testing.T) {
	t.Parallel()
	for seed := range uint64(500) {
		r := randomRecord(rand.New(rand.NewPCG(seed, 3)))
		want, err := EncodeJSON(r)
		if err != nil {
			t.Fatal(err)
		}
		got, err := r.AppendJSON([]byte("before"))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != "before"+string(want) {
			t.Fatalf("seed %d:\n%s\nwant\n%s", seed, got, want)
		}
	}
}

func TestRecordJSONRefusesWhatIsNone(t *testing.T) {
	t.Parallel()
	_, ref := NewBlob(json.RawMessage(strings.Repeat("x", BlobSize)))
	for name, output := range map[string]json.RawMessage{"a reference": ref, "nothing": {}, "half an object": json.RawMessage("{ ")} {
		if got, err := (&Record{Output: output}).AppendJSON(nil); err == nil {
			t.Errorf("%s is written as %s", name, got)
		}
	}
}

func randomRecord(rng *rand.Rand) *Record {
	text := func() string {
		return []string{"", "plain", "a \"b\"\\", "tab\tline\n", "ümlaut ✓", "<&>", "\u2028", "\x00\x7f", "bad \xff"}[rng.IntN(9)]
	}
	raw := func() json.RawMessage {
		return []json.RawMessage{nil, json.RawMessage("null"), json.RawMessage(`{"a":[1,2.50,"<"]}`), json.RawMessage(" { \"a\" :\n 1 } "), json.RawMessage(`"x y"`)}[rng.IntN(5)]
	}
	at := func() time.Time {
		return time.Unix(rng.Int64N(4e9), []int64{0, 1, 120_000_000, 999_999_999}[rng.IntN(4)]).UTC()
	}
	maybe := func() *time.Time {
		if rng.IntN(2) == 0 {
			return nil
		}
		when := at()
		return &when
	}
	ms := func() *float64 {
		f := []float64{0, 1, 0.000001, 0.0000001, 12.5, 1e21, 1e20, 3.141592653589793, -2}[rng.IntN(9)]
		if rng.IntN(4) == 0 {
			return nil
		}
		return &f
	}
	failure := func() *Failure {
		if rng.IntN(2) == 0 {
			return nil
		}
		return &Failure{Outcome: OutcomeFailed, Code: text(), Message: text(), Details: raw(), At: text()}
	}
	waitsFor := func() *WaitsFor {
		if rng.IntN(2) == 0 {
			return nil
		}
		return &WaitsFor{Reason: WaitRate, Limit: text(), Rate: text(), Next: at(), Tasks: []string{text()}, InUse: rng.IntN(2)}
	}
	r := &Record{
		Run: NewID(at()), Flow: text(), State: Failed, Output: raw(), Error: failure(), WaitsFor: waitsFor(),
		Trigger:   Trigger{Kind: TriggerMessage, Name: text(), Time: at(), Payload: raw()},
		CreatedAt: at(), StartedAt: maybe(), FinishedAt: maybe(), DurationMS: ms(), Truncated: rng.IntN(2) == 0,
	}
	if rng.IntN(2) == 0 {
		r.RetryOf, r.Attempt, r.Params = NewID(at()), rng.IntN(4), map[string]json.RawMessage{"b": raw(), text(): raw(), text(): raw()}
	}
	for range rng.IntN(4) {
		task := TaskRecord{
			Task: text(), State: Succeeded, Attempts: rng.IntN(3), Reused: rng.IntN(2) == 0, StartedAt: maybe(), FinishedAt: maybe(),
			DurationMS: ms(), Module: text(), Input: raw(), Output: raw(), Error: failure(), WaitsFor: waitsFor(),
		}
		if rng.IntN(2) == 0 {
			key, outcome := text(), OutcomeSucceeded
			task.Key, task.Outcome = &key, &outcome
			task.Child, task.Items, task.Due, task.Deadline = ID(text()), raw(), maybe(), maybe()
			task.Subject, task.Approval, task.Reason = text(), text(), text()
			if rng.IntN(2) == 0 {
				task.Counts = &ItemCounts{Total: 3, Waiting: rng.IntN(2), Failed: rng.IntN(2)}
			}
			r.Parent = &Parent{Run: NewID(at()), TaskRef: TaskRef{Task: text(), Key: text()}, Depth: 1}
		}
		r.Tasks = append(r.Tasks, task)
	}
	return r
}

func BenchmarkRecordJSON(b *testing.B) {
	r := randomRecord(rand.New(rand.NewPCG(1, 1)))
	now, ms, done := time.Now(), 0.25, OutcomeSucceeded
	r.Tasks = nil
	for range 10 {
		r.Tasks = append(r.Tasks, TaskRecord{
			Task: "t1", State: Succeeded, Outcome: &done, Attempts: 1, StartedAt: &now, FinishedAt: &now, DurationMS: &ms,
			Module: "sha256:" + strings.Repeat("0", 64), Input: json.RawMessage(`{"i":1,"n":1}`), Output: json.RawMessage(`{"n":1}`),
		})
	}
	b.Run("append", func(b *testing.B) {
		var out []byte
		for b.Loop() {
			out, _ = r.AppendJSON(out[:0])
		}
	})
	b.Run("encoder", func(b *testing.B) {
		for b.Loop() {
			EncodeJSON(r)
		}
	})
}
