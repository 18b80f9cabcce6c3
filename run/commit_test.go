package run

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var t0 = time.Date(2026, 3, 29, 1, 2, 3, 456789, time.UTC)

const keptRun = "01KMVQZ3G0ABCDEFGHJKMNPQR" // prefix of the ids of runs in testdata/commits

// everyEvent has one event of each kind, with every field set.
func everyEvent() []Event {
	failure := &Failure{
		Outcome: OutcomeFailed, Code: "no_stock", Message: "none left", Retryable: true,
		RetryAfter: 3 * time.Second, Details: json.RawMessage(`{"sku":"a<b"}`), Task: "price", At: "orders.hcl:14",
	}
	ref := TaskRef{Task: "price", Key: "eu"}
	schedule := ScheduleRef{Flow: "orders", Trigger: "night"}
	const backfill = "01KMVQZ3G0ABCDEFGHJKMNPQRT"
	id := NewID(t0)
	data := []EventData{
		&Defined{Definition: &Definition{
			Prefix: "billing/", Files: map[string][]byte{"a.hcl": []byte("flow \"a\" {}\n")},
			Vars: map[string]json.RawMessage{"n": json.RawMessage(`1`)}, Plugins: map[string]string{"./a.wasm": "sha256:00"},
		}},
		&Decided{Position{Source: "triggers", Seq: 7}},
		&Decided{Position{Source: "triggers", Seq: 8, At: t0.Add(-time.Second)}},
		&Submitted{
			Flow: "orders", Definition: "sha256:01", Concurrency: "c1",
			Trigger: Trigger{
				Kind: TriggerMessage, Name: "created", Time: t0, Subject: "orders.created",
				Headers: map[string][]string{"A": {"1", "2"}}, Payload: json.RawMessage(`{"total":12345678901234567890.10}`),
			},
			Params: map[string]json.RawMessage{"p": json.RawMessage(`"<&>"`)},
			Key:    "k1", RetryOf: NewID(t0),
		},
		&TaskReused{TaskRef: TaskRef{Task: "fetch"}, Output: json.RawMessage(`{"reused":true}`)},
		&Submitted{
			Flow: "bill", Definition: "sha256:01", Trigger: Trigger{Kind: TriggerTask, Time: t0},
			Parent: &Parent{Run: NewID(t0), TaskRef: ref, Depth: 2},
		},
		&Submitted{
			Flow: "orders", Definition: "sha256:01", Trigger: Trigger{Kind: TriggerManual, Time: t0}, RetryOf: NewID(t0), Attempt: 3,
			Continuation: json.RawMessage(`{"task":{"task":"price"}}`),
		},
		&Submitted{
			Flow: "bill", Definition: "sha256:01", Trigger: Trigger{Kind: TriggerTask, Time: t0}, RetryOf: NewID(t0),
			Parent: &Parent{Run: NewID(t0), TaskRef: ref, Depth: 2}, Continuation: json.RawMessage(`{}`),
		},
		&Submitted{Flow: "copies", Definition: "sha256:01", Trigger: Trigger{Kind: TriggerManual, Time: t0}, RetryOf: NewID(t0), Awaits: 3},
		&TaskReused{TaskRef: TaskRef{Task: "copy"}, State: Running, Items: json.RawMessage(`["a","b"]`)},
		&TaskReused{TaskRef: TaskRef{Task: "copy", Key: "1"}, State: Failed, Failure: failure},
		&Started{},
		&TaskExpanded{TaskRef: TaskRef{Task: "price"}, Items: json.RawMessage(`{"eu":1}`)},
		&WaitStarted{TaskRef: TaskRef{Task: "wait.approval"}, Subject: "orders.approved", Approval: "an order", Due: t0.Add(time.Hour), Deadline: t0.Add(time.Minute)},
		&WaitEnded{TaskRef: TaskRef{Task: "wait.approval"}, State: Failed, Payload: json.RawMessage(`{"approved":false}`), Failure: failure},
		&ChildStarted{TaskRef: TaskRef{Task: "price", Key: "us"}, Attempt: 1, Child: NewID(t0), Input: json.RawMessage(`{}`)},
		&AttemptStarted{TaskRef: ref, Attempt: 1, Module: "sha256:02", Function: "price", Input: json.RawMessage(`{"a":1}`), Config: json.RawMessage(`null`)},
		&AttemptFinished{TaskRef: ref, Attempt: 1, Outcome: OutcomeFailed, Failure: failure, RetryAt: t0.Add(time.Second), Duration: time.Millisecond},
		&AttemptFinished{TaskRef: ref, Attempt: 2, Outcome: OutcomeSucceeded, Output: json.RawMessage(`[1,"\u003c"]`), Duration: 1},
		&TaskEnded{TaskRef: TaskRef{Task: "review"}, State: Skipped, Failure: failure},
		&TaskCancelRequested{TaskRef: ref, Failure: failure},
		&CancelRequested{Failure: failure},
		&Finished{State: Failed, Output: json.RawMessage(`{}`), Failure: failure},
		&ScheduleSet{ScheduleRef: schedule, Spec: "cron 0 * * * * UTC", From: t0},
		&ScheduleAdvanced{ScheduleRef: schedule, Nominal: t0.Add(time.Hour), Dropped: 12, Reason: DropMisfire},
		&SchedulePaused{ScheduleRef: schedule, Reason: "upstream is down"},
		&ScheduleResumed{ScheduleRef: schedule},
		&BackfillStarted{ID: backfill, Schedule: schedule, Times: []time.Time{t0, t0.Add(-time.Hour)}, MaxActive: 3},
		&BackfillAdvanced{ID: backfill},
		&BackfillEnded{ID: backfill, Reason: "not needed"},
	}
	events := make([]Event, len(data))
	for i, d := range data {
		events[i] = Event{Run: id, At: t0.Add(time.Duration(i)), Data: d}
		submitted, ok := d.(*Submitted)
		switch {
		case !ok:
		case submitted.Awaits > 0:
			events[i].Run = keptRun + "X"
		case submitted.Parent == nil && submitted.Continuation == nil:
		case submitted.Continuation == nil:
			events[i].Run = keptRun + "U"
		case submitted.Parent == nil:
			events[i].Run = keptRun + "V"
		default:
			events[i].Run = keptRun + "W"
		}
	}
	return events
}

func TestCommitKeepsEveryEvent(t *testing.T) {
	t.Parallel()
	want := everyEvent()
	var c Commit
	for range 2 { // the second time in the memory of the first
		c.Reset()
		add(t, &c, want[:3]...)
		add(t, &c, want[3:]...)
		got, err := DecodeCommit(c.Seal(7))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(&StoredCommit{After: 7, Events: want}, got); diff != "" {
			t.Fatalf("decoded events differ (-want +got):\n%s", diff)
		}
	}
	if sealed, again := string(c.Seal(7)), string(c.Seal(7)); sealed != again {
		t.Error("sealed twice it is not the same")
	}
}

func add(t *testing.T, c *Commit, events ...Event) {
	t.Helper()
	if err := c.Add(events...); err != nil {
		t.Fatal(err)
	}
}

func TestCommitSum(t *testing.T) {
	t.Parallel()
	var c Commit
	seen := map[uint32]string{}
	note := func(what string, stored []byte) {
		t.Helper()
		sum := CommitSum(stored)
		if seen[sum] != "" {
			t.Errorf("%s and %s have the sum %08x", what, seen[sum], sum)
		}
		seen[sum] = what
	}
	add(t, &c, everyEvent()[0])
	note("a commit", bytes.Clone(c.Seal(7)))
	if seen[CommitSum(c.Seal(7))] == "" {
		t.Error("a commit that is sealed again has another sum")
	}
	note("one that follows another revision", c.Seal(8))
	later := everyEvent()[0]
	later.At = later.At.Add(1)
	c.Reset()
	add(t, &c, later)
	note("one of another time", c.Seal(7))
	note("nothing", nil)
}

// Journals live longer than programs: testdata has a commit of each released version,
// with the same events except those that the version did not know.
func TestCommitsOfAllVersionsAreRead(t *testing.T) {
	t.Parallel()
	for version := 1; version <= CommitVersion; version++ {
		stored, err := os.ReadFile(fmt.Sprintf("testdata/commits/v%d", version))
		if err != nil {
			t.Fatal(err)
		}
		got, err := DecodeCommit(stored)
		if err != nil {
			t.Fatalf("version %d: %v", version, err)
		}
		if diff := cmp.Diff(keptEvents(), got.Events); diff != "" {
			t.Errorf("version %d (-want +got):\n%s", version, diff)
		}
	}
}

// keptEvents are the events in testdata/commits: everyEvent with fixed ids.
func keptEvents() []Event {
	events := everyEvent()
	for i := range events {
		e := &events[i]
		if !strings.HasPrefix(string(e.Run), keptRun) {
			e.Run = keptRun + "S"
		}
		switch d := e.Data.(type) {
		case *Submitted:
			if d.Parent != nil {
				d.Parent.Run = keptRun + "S"
			}
			if d.RetryOf != "" {
				d.RetryOf = keptRun + "S"
			}
		case *ChildStarted:
			d.Child = e.Run
		}
	}
	return events
}

func TestCommitAddsAllOrNothing(t *testing.T) {
	t.Parallel()
	var c Commit
	events := everyEvent()
	add(t, &c, events[0])
	before := string(c.Seal(1))
	broken := Event{Run: "r", At: t0, Data: &CancelRequested{Failure: &Failure{Details: json.RawMessage(`{`)}}}
	if err := c.Add(events[1], broken); err == nil {
		t.Fatal("an event with broken JSON was taken")
	}
	if fits, err := c.AddWithin(c.Size()+20, events...); fits || err != nil {
		t.Fatalf("events that do not fit were taken: %v", err)
	}
	if got := string(c.Seal(1)); got != before || c.Len() != 1 {
		t.Errorf("the commit of %d events changed to %q", c.Len(), got)
	}
	// What was not added must not be remembered as added.
	add(t, &c, events[1])
	got, err := DecodeCommit(c.Seal(1))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(events[:2], got.Events); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestLargePayloadsAreStoredApart(t *testing.T) {
	t.Parallel()
	large := json.RawMessage(`"` + strings.Repeat("x", BlobSize) + `"`)
	small := json.RawMessage(`"` + strings.Repeat("x", BlobSize/2) + `"`)
	event := Event{Run: "r", At: t0, Data: &AttemptStarted{TaskRef: TaskRef{Task: "a"}, Attempt: 1, Input: large, Config: small}}
	var c Commit
	add(t, &c, event)
	blobs := c.Blobs()
	if len(blobs) != 1 || string(blobs[0].Data) != string(large) || !IsBlob(blobs[0].Name, large) {
		t.Fatalf("%d blobs, want the input alone", len(blobs))
	}
	if c.Size() > BlobSize {
		t.Errorf("the commit has %d bytes", c.Size())
	}
	got, err := DecodeCommit(c.Seal(0))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	got.Events[0].Payloads(func(p *json.RawMessage) {
		if name, apart := BlobName(*p); apart {
			names = append(names, name)
			*p = large
		}
	})
	if len(names) != 1 || names[0] != blobs[0].Name {
		t.Errorf("the event refers to %v, and %s is stored", names, blobs[0].Name)
	}
	if diff := cmp.Diff(event, got.Events[0]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDecodeCommitRefuses(t *testing.T) {
	t.Parallel()
	var c Commit
	add(t, &c, everyEvent()...)
	sealed := c.Seal(1)
	flipped := bytes.Clone(sealed)
	flipped[len(flipped)/2] ^= 1
	for name, c := range map[string]struct{ stored, want string }{
		"nothing":         {"", "does not begin like a commit"},
		"JSON":            {`{"v":1}`, "does not begin like a commit"},
		"a later version": {"\xf7\x63", "version 99"},
		"unknown kind":    {string(mended([]byte("\xf7\x01\x00\xff\x00\x00\x00____"))), "unknown kind of event 255"},
		"broken event":    {string(mended([]byte("\xf7\x01\x00\x02____"))), "event 0"},
		"one bit":         {string(flipped), "checksum"},
		"its half":        {string(sealed[:len(sealed)/2]), "checksum"},
		"its beginning":   {string(sealed[:3]), "3 bytes"},
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
// must answer with an error at worst. The checksum is put right, so that it does
// not keep the fuzzer out.
func FuzzDecodeCommit(f *testing.F) {
	var c Commit
	if err := c.Add(everyEvent()...); err != nil {
		f.Fatal(err)
	}
	f.Add(c.Seal(1))
	f.Fuzz(func(t *testing.T, stored []byte) {
		got, err := DecodeCommit(mended(stored))
		if err != nil {
			return
		}
		s := NewShard()
		for _, e := range got.Events {
			if r, err := s.Apply(e); err == nil && r != nil {
				r.Record(nil)
			}
		}
		var again Commit
		if again.Add(got.Events...) != nil {
			return // JSON within that is broken
		}
		second, err := DecodeCommit(again.Seal(got.After))
		if err != nil {
			t.Fatalf("decoded events, encoded again, are not read: %v", err)
		}
		if len(second.Events) != len(got.Events) {
			t.Fatalf("%d events have become %d", len(got.Events), len(second.Events))
		}
	})
}

// mended gives stored bytes with a right checksum at the end.
func mended(stored []byte) []byte {
	if len(stored) < checksumSize {
		return stored
	}
	body := bytes.Clone(stored[:len(stored)-checksumSize])
	return binary.LittleEndian.AppendUint32(body, crc32.Checksum(body, checksum))
}

func BenchmarkCommit(b *testing.B) {
	id := NewID(t0)
	events := []Event{
		{Run: id, At: t0, Data: &AttemptStarted{TaskRef: TaskRef{Task: "t3"}, Attempt: 1, Module: "sha256:" + strings.Repeat("a", 64), Function: "run", Input: json.RawMessage(`{"i":3,"n":1}`)}},
		{Run: id, At: t0, Data: &AttemptFinished{TaskRef: TaskRef{Task: "t3"}, Attempt: 1, Outcome: OutcomeSucceeded, Output: json.RawMessage(`{"n":1}`)}},
	}
	var c Commit
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if i%1000 == 0 {
			c.Reset()
		}
		if err := c.Add(events...); err != nil {
			b.Fatal(err)
		}
	}
}
