package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/run/internal/runtest"
)

// sealed is the snapshot of a shard, its runs in order of their ids: the same
// bytes for the same state.
func sealed(t testing.TB, s *run.Shard, revision uint64) []byte {
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

var ownFields = cmp.Options{cmp.Exporter(func(reflect.Type) bool { return true }), cmpopts.EquateEmpty(), cmpopts.IgnoreFields(run.Run{}, "last")}

// A state that went through a snapshot at any moment is the same state, and what
// follows makes the same of it.
func TestSnapshotIsTheState(t *testing.T) {
	t.Parallel()
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 2))
		s := run.NewShard()
		for i := range 300 {
			id := run.ID(fmt.Sprint("r", rng.IntN(3)))
			e := run.Event{Run: id, At: runtest.T0.Add(time.Duration(i) * time.Second), Data: runtest.Random(rng)}
			if d, ok := e.Data.(*run.Submitted); ok {
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
	s := run.NewShard()
	for i, e := range runtest.Every() {
		switch d := e.Data.(type) {
		case *run.Finished:
			continue // the run would be forgotten
		case *run.AttemptFinished:
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
	s := run.NewShard()
	for _, d := range []run.EventData{&run.Submitted{Flow: "f"}, &run.Started{}} {
		if _, err := s.Apply(run.Event{Run: "r", At: runtest.T0, Data: d}); err != nil {
			t.Fatal(err)
		}
	}
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
		if err == nil || errors.Is(err, run.ErrDamaged) != c.damaged || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, c.want)
		}
	}
}

func FuzzDecodeSnapshot(f *testing.F) {
	s := run.NewShard()
	for _, e := range runtest.Every()[:5] {
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

// A run that takes over more than one commit holds does not start before all of it is
// there, also when a snapshot comes in between.
func TestARunAwaitsWhatItTakesOver(t *testing.T) {
	t.Parallel()
	s, id := run.NewShard(), run.NewID(runtest.T0)
	apply := func(data run.EventData) error {
		_, err := s.Apply(run.Event{Run: id, At: runtest.T0, Data: data})
		return err
	}
	if err := apply(&run.Submitted{Flow: "f", Awaits: -1}); err == nil {
		t.Error("a run awaits less than nothing")
	}
	if err := apply(&run.Submitted{Flow: "f", Awaits: 2}); err != nil {
		t.Fatal(err)
	}
	for _, task := range []string{"a", "b"} {
		if err := apply(&run.Started{}); err == nil {
			t.Errorf("the run starts before task %s is taken over", task)
		}
		if err := apply(&run.TaskReused{TaskRef: run.TaskRef{Task: task}}); err != nil {
			t.Fatal(err)
		}
		restored, _, err := DecodeSnapshot(sealed(t, s, 3))
		if err != nil {
			t.Fatal(err)
		}
		s = restored
	}
	if err := apply(&run.Started{}); err != nil {
		t.Error(err)
	}
}

func BenchmarkSnapshot(b *testing.B) {
	s := run.NewShard()
	id := run.NewID(runtest.T0)
	apply := func(data run.EventData) {
		if _, err := s.Apply(run.Event{Run: id, At: runtest.T0, Data: data}); err != nil {
			b.Fatal(err)
		}
	}
	apply(&run.Submitted{Flow: "f", Definition: "d"})
	apply(&run.Started{})
	for i := range 10 {
		ref := run.TaskRef{Task: fmt.Sprint("t", i)}
		apply(&run.AttemptStarted{TaskRef: ref, Attempt: 1, Module: "m", Input: json.RawMessage(`{"i":3,"n":1}`)})
		apply(&run.AttemptFinished{TaskRef: ref, Attempt: 1, Outcome: run.OutcomeSucceeded, Output: json.RawMessage(`{"n":1}`)})
	}
	r := s.Runs[id]
	b.ReportAllocs()
	for b.Loop() {
		n, err := NewSnapshot(run.NewShard())
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
