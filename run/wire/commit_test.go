package wire

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/run/internal/runtest"
)

func TestCommitKeepsEveryEvent(t *testing.T) {
	t.Parallel()
	want := runtest.Every()
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

func add(t *testing.T, c *Commit, events ...run.Event) {
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
	add(t, &c, runtest.Every()[0])
	note("a commit", bytes.Clone(c.Seal(7)))
	if seen[CommitSum(c.Seal(7))] == "" {
		t.Error("a commit that is sealed again has another sum")
	}
	note("one that follows another revision", c.Seal(8))
	later := runtest.Every()[0]
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

// keptEvents are the events in testdata/commits: runtest.Every with fixed ids.
func keptEvents() []run.Event {
	events := runtest.Every()
	for i := range events {
		e := &events[i]
		if !strings.HasPrefix(string(e.Run), runtest.KeptRun) {
			e.Run = runtest.KeptRun + "S"
		}
		switch d := e.Data.(type) {
		case *run.Submitted:
			if d.Parent != nil {
				d.Parent.Run = runtest.KeptRun + "S"
			}
			if d.RetryOf != "" {
				d.RetryOf = runtest.KeptRun + "S"
			}
		case *run.ChildStarted:
			d.Child = e.Run
		}
	}
	return events
}

func TestCommitAddsAllOrNothing(t *testing.T) {
	t.Parallel()
	var c Commit
	events := runtest.Every()
	add(t, &c, events[0])
	before := string(c.Seal(1))
	broken := run.Event{Run: "r", At: runtest.T0, Data: &run.CancelRequested{Failure: &run.Failure{Details: json.RawMessage(`{`)}}}
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
	large := json.RawMessage(`"` + strings.Repeat("x", run.BlobSize) + `"`)
	small := json.RawMessage(`"` + strings.Repeat("x", run.BlobSize/2) + `"`)
	event := run.Event{Run: "r", At: runtest.T0, Data: &run.AttemptStarted{TaskRef: run.TaskRef{Task: "a"}, Attempt: 1, Input: large, Config: small}}
	var c Commit
	add(t, &c, event)
	blobs := c.Blobs()
	if len(blobs) != 1 || string(blobs[0].Data) != string(large) || !run.IsBlob(blobs[0].Name, large) {
		t.Fatalf("%d blobs, want the input alone", len(blobs))
	}
	if c.Size() > run.BlobSize {
		t.Errorf("the commit has %d bytes", c.Size())
	}
	got, err := DecodeCommit(c.Seal(0))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	got.Events[0].Payloads(func(p *json.RawMessage) {
		if name, apart := run.BlobName(*p); apart {
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
	add(t, &c, runtest.Every()...)
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
	if err := c.Add(runtest.Every()...); err != nil {
		f.Fatal(err)
	}
	f.Add(c.Seal(1))
	f.Fuzz(func(t *testing.T, stored []byte) {
		got, err := DecodeCommit(mended(stored))
		if err != nil {
			return
		}
		s := run.NewShard()
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
	id := run.NewID(runtest.T0)
	events := []run.Event{
		{Run: id, At: runtest.T0, Data: &run.AttemptStarted{TaskRef: run.TaskRef{Task: "t3"}, Attempt: 1, Module: "sha256:" + strings.Repeat("a", 64), Function: "run", Input: json.RawMessage(`{"i":3,"n":1}`)}},
		{Run: id, At: runtest.T0, Data: &run.AttemptFinished{TaskRef: run.TaskRef{Task: "t3"}, Attempt: 1, Outcome: run.OutcomeSucceeded, Output: json.RawMessage(`{"n":1}`)}},
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
