package run

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var t0 = time.Date(2026, 3, 29, 1, 2, 3, 456789, time.UTC)

// everyEvent has one event of each kind, with every field set.
func everyEvent() []Event {
	failure := &Failure{
		Outcome: OutcomeFailed, Code: "no_stock", Message: "none left", Retryable: true,
		RetryAfter: 3 * time.Second, Details: json.RawMessage(`{"sku":"a<b"}`), Task: "price", At: "orders.hcl:14",
	}
	ref := TaskRef{Task: "price", Key: "eu"}
	id := NewID(t0)
	data := []EventData{
		&Defined{Definition: &Definition{
			Prefix: "billing/", Files: map[string][]byte{"a.hcl": []byte("flow \"a\" {}\n")},
			Vars: map[string]json.RawMessage{"n": json.RawMessage(`1`)}, Plugins: map[string]string{"./a.wasm": "sha256:00"},
		}},
		&Decided{Position{Source: "triggers", Seq: 7}},
		&Submitted{
			Flow: "orders", Definition: "sha256:01", Concurrency: "c1",
			Trigger: Trigger{
				Kind: TriggerMessage, Name: "created", Time: t0, Subject: "orders.created",
				Headers: map[string][]string{"A": {"1", "2"}}, Payload: json.RawMessage(`{"total":12345678901234567890.10}`),
			},
			Params: map[string]json.RawMessage{"p": json.RawMessage(`"<&>"`)},
		},
		&Started{},
		&AttemptStarted{TaskRef: ref, Attempt: 1, Module: "sha256:02", Function: "price", Input: json.RawMessage(`{"a":1}`), Config: json.RawMessage(`null`)},
		&AttemptFinished{TaskRef: ref, Attempt: 1, Outcome: OutcomeFailed, Failure: failure, RetryAt: t0.Add(time.Second), Duration: time.Millisecond},
		&AttemptFinished{TaskRef: ref, Attempt: 2, Outcome: OutcomeSucceeded, Output: json.RawMessage(`[1,"\u003c"]`), Duration: 1},
		&TaskEnded{TaskRef: TaskRef{Task: "review"}, State: Skipped, Failure: failure},
		&CancelRequested{Failure: failure},
		&Finished{State: Failed, Output: json.RawMessage(`{}`), Failure: failure},
	}
	events := make([]Event, len(data))
	for i, d := range data {
		events[i] = Event{Run: id, At: t0.Add(time.Duration(i)), Data: d}
	}
	return events
}

func TestCommitKeepsEveryEvent(t *testing.T) {
	t.Parallel()
	want := everyEvent()
	var c Commit
	if err := c.Add(want[:3]...); err != nil {
		t.Fatal(err)
	}
	var rest Commit
	if err := rest.Add(want[3:]...); err != nil {
		t.Fatal(err)
	}
	c.Append(&rest)
	got, err := DecodeCommit(c.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("decoded events differ (-want +got):\n%s", diff)
	}
}

func TestCommitAddsAllOrNothing(t *testing.T) {
	t.Parallel()
	var c Commit
	events := everyEvent()
	if err := c.Add(events[0]); err != nil {
		t.Fatal(err)
	}
	before := string(c.Bytes())
	broken := Event{Run: "r", At: t0, Data: &Finished{State: Succeeded, Output: json.RawMessage(`{`)}}
	if err := c.Add(events[1], broken); err == nil {
		t.Fatal("an event with broken JSON was taken")
	}
	if got := string(c.Bytes()); got != before {
		t.Errorf("the commit changed to %q", got)
	}
}

func TestDecodeCommitRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ stored, want string }{
		"nothing":         {"", "not a commit"},
		"another version": {`{"v":99}`, "version 99"},
		"unknown kind":    {"{\"v\":1}\n{\"k\":\"vanished\",\"t\":1,\"d\":{}}\n", `unknown kind "vanished"`},
		"broken event":    {"{\"v\":1}\n{\"k\":\"started\"", "event 0"},
		"broken data":     {"{\"v\":1}\n{\"k\":\"finished\",\"t\":1,\"d\":[]}\n", "finished"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := DecodeCommit([]byte(c.stored)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}

// A journal may hold anything after a disk has lied. Decoding and folding it
// must answer with an error at worst.
func FuzzDecodeCommit(f *testing.F) {
	var c Commit
	if err := c.Add(everyEvent()...); err != nil {
		f.Fatal(err)
	}
	f.Add(c.Bytes())
	f.Add([]byte("{\"v\":1}\n{\"k\":\"defined\",\"t\":1,\"d\":null}\n"))
	f.Fuzz(func(t *testing.T, stored []byte) {
		events, err := DecodeCommit(stored)
		if err != nil {
			return
		}
		s := NewShard()
		for _, e := range events {
			if r, err := s.Apply(e); err == nil && r != nil {
				r.Record(nil)
			}
		}
		var again Commit
		if err := again.Add(events...); err != nil {
			t.Fatalf("decoded events cannot be encoded: %v", err)
		}
	})
}
