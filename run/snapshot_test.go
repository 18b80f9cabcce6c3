package run

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// sealed is the snapshot of a shard, its runs in order of their ids: the same
// bytes for the same state.
func sealed(t testing.TB, s *Shard, revision uint64) []byte {
	t.Helper()
	n, err := NewSnapshot(s)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range slices.Sorted(maps.Keys(s.Runs)) {
		if err := n.Add(s.Runs[id]); err != nil {
			t.Fatal(err)
		}
	}
	if n.Runs() != len(s.Runs) {
		t.Fatalf("%d runs written, want %d", n.Runs(), len(s.Runs))
	}
	return n.Seal(revision)
}

var ownFields = cmp.Options{cmp.AllowUnexported(Run{}, TaskRun{}, Keys{}, keyOf{}, keyed{}, key{}), cmpopts.EquateEmpty(), cmpopts.IgnoreFields(Run{}, "last")}

// A state that went through a snapshot at any moment is the same state, and what
// follows makes the same of it.
func TestSnapshotIsTheState(t *testing.T) {
	t.Parallel()
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 2))
		s := NewShard()
		for i := range 300 {
			id := ID(fmt.Sprint("r", rng.IntN(3)))
			e := Event{Run: id, At: t0.Add(time.Duration(i) * time.Second), Data: randomEvent(rng)}
			if d, ok := e.Data.(*Submitted); ok {
				d.Key = fmt.Sprint("k", rng.IntN(5))
			}
			if r, err := s.Apply(e); err == nil && r != nil && r.State.Done() {
				s.Forget(r.ID)
			}
			if rng.IntN(10) > 0 {
				continue
			}
			stored := sealed(t, s, uint64(i))
			restored, revision, err := DecodeSnapshot(stored)
			if err != nil || revision != uint64(i) {
				t.Fatalf("seed %d, event %d: revision %d, %v", seed, i, revision, err)
			}
			if diff := cmp.Diff(s, restored, ownFields); diff != "" {
				t.Fatalf("seed %d, event %d (-want +got):\n%s", seed, i, diff)
			}
			s = restored
		}
	}
}

func TestSnapshotHoldsEverything(t *testing.T) {
	t.Parallel()
	s := NewShard()
	for i, e := range everyEvent() {
		switch d := e.Data.(type) {
		case *Finished:
			continue // the run would be forgotten
		case *AttemptFinished:
			if d.RetryAt.IsZero() {
				d.Attempt = 1
				continue
			}
		}
		if _, err := s.Apply(e); err != nil {
			t.Fatalf("event %d: %v", i, err)
		}
	}
	got, _, err := DecodeSnapshot(sealed(t, s, 9))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(s, got, ownFields); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDecodeSnapshotRefuses(t *testing.T) {
	t.Parallel()
	s, _ := story(t, &Submitted{Flow: "f"}, &Started{})
	stored := sealed(t, s, 3)
	for name, c := range map[string]struct {
		stored  []byte
		damaged bool
		want    string
	}{
		"nothing":       {nil, true, "does not begin"},
		"a commit":      {new(Commit).Seal(1), true, "does not begin"},
		"cut off":       {stored[:len(stored)-5], true, "checksum"},
		"a later one":   {append([]byte{snapshotMagic, 99}, stored[2:]...), false, "version 99"},
		"more after it": {mended(append(bytes.Clone(stored[:len(stored)-checksumSize]), 1, 0, 0, 0, 0)), true, "follow the end"},
	} {
		_, _, err := DecodeSnapshot(c.stored)
		if err == nil || errors.Is(err, ErrDamaged) != c.damaged || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, c.want)
		}
	}
}

func FuzzDecodeSnapshot(f *testing.F) {
	s := NewShard()
	for _, e := range everyEvent()[:5] {
		if _, err := s.Apply(e); err != nil {
			f.Fatal(err)
		}
	}
	f.Add(sealed(f, s, 3))
	f.Fuzz(func(t *testing.T, stored []byte) {
		s, _, err := DecodeSnapshot(mended(stored))
		if err != nil {
			return
		}
		for _, r := range s.Runs {
			r.Record(nil)
		}
	})
}

func TestKeysAreForgotten(t *testing.T) {
	t.Parallel()
	var k Keys
	k.add("f", "a", "r1", t0)
	k.add("f", "a", "r2", t0.Add(time.Hour))
	k.add("g", "a", "r3", t0.Add(time.Hour))
	if id, known := k.Run("f", "a", t0.Add(KeyAge)); !known || id != "r1" {
		t.Errorf("after %s: %q, %t, want the first run", KeyAge, id, known)
	}
	if id, known := k.Run("f", "a", t0.Add(KeyAge+1)); known {
		t.Errorf("after more than %s it still stands for %s", KeyAge, id)
	}
	k.add("f", "a", "r4", t0.Add(KeyAge+1))
	if id, _ := k.Run("f", "a", t0.Add(KeyAge+1)); id != "r4" || k.Len() != 2 {
		t.Errorf("used again after its time it stands for %q, and %d keys are known", id, k.Len())
	}
	for i := range MaxKeys {
		k.add("h", fmt.Sprint(i), "r", t0.Add(KeyAge+2))
	}
	if _, known := k.Run("f", "a", t0.Add(KeyAge+2)); known || k.Len() != MaxKeys {
		t.Errorf("%d keys are known", k.Len())
	}
}

func BenchmarkSnapshot(b *testing.B) {
	s := NewShard()
	id := NewID(t0)
	apply := func(data EventData) {
		if _, err := s.Apply(Event{Run: id, At: t0, Data: data}); err != nil {
			b.Fatal(err)
		}
	}
	apply(&Submitted{Flow: "f", Definition: "d"})
	apply(&Started{})
	for i := range 10 {
		ref := TaskRef{Task: fmt.Sprint("t", i)}
		apply(&AttemptStarted{TaskRef: ref, Attempt: 1, Module: "m", Input: json.RawMessage(`{"i":3,"n":1}`)})
		apply(&AttemptFinished{TaskRef: ref, Attempt: 1, Outcome: OutcomeSucceeded, Output: json.RawMessage(`{"n":1}`)})
	}
	r := s.Runs[id]
	b.ReportAllocs()
	for b.Loop() {
		n, err := NewSnapshot(NewShard())
		if err != nil {
			b.Fatal(err)
		}
		for range 1000 {
			if err := n.Add(r); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/run")
}
