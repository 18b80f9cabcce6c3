package run_test

import (
	"encoding/json"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/run/internal/runtest"
)

// Random events, most of them out of place: whatever is accepted keeps the
// invariants, and folding the accepted ones again gives the same state.
func TestFoldIsDeterministic(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		s := run.NewShard()
		var accepted []run.Event
		for i := range 200 {
			e := run.Event{Run: "r", At: runtest.T0.Add(time.Duration(i)), Data: runtest.Random(rng)}
			if _, err := s.Apply(e); err == nil {
				accepted = append(accepted, e)
				checkInvariants(t, seed, s.Runs["r"])
			}
		}
		again := run.NewShard()
		for _, e := range accepted {
			if _, err := again.Apply(e); err != nil {
				t.Fatalf("seed %d: an accepted event is refused in the second fold: %v", seed, err)
			}
		}
		if a, b := recordJSON(t, s.Runs["r"]), recordJSON(t, again.Runs["r"]); a != b {
			t.Fatalf("seed %d: the folds differ:\n%s\n%s", seed, a, b)
		}
	}
}

func checkInvariants(t *testing.T, seed uint64, r *run.Run) {
	t.Helper()
	if r == nil {
		return
	}
	for _, task := range r.Tasks {
		switch {
		case task.Lost > task.Attempts:
			t.Fatalf("seed %d: %d lost of %d attempts", seed, task.Lost, task.Attempts)
		case task.State.Done() == task.FinishedAt.IsZero():
			t.Fatalf("seed %d: task is %s with finish time %s", seed, task.State, task.FinishedAt)
		case (task.State == run.Ready) == task.Due.IsZero():
			t.Fatalf("seed %d: task is %s and due %s", seed, task.State, task.Due)
		case r.State.Done() && !task.State.Done():
			t.Fatalf("seed %d: the run is %s and its task %s", seed, r.State, task.State)
		case r.State == run.Pending && task.Attempts > 0:
			t.Fatalf("seed %d: a pending run has made attempts", seed)
		}
	}
}

func recordJSON(t *testing.T, r *run.Run) string {
	t.Helper()
	if r == nil {
		return ""
	}
	text, err := json.Marshal(r.Record(nil))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
