package crashtest_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/flowhost/flowhost/internal/crashtest"
)

// TestMarks kills a host whose tasks publish to a stream, write to a database and count in a
// bucket: each message is stored once, no run, row or count is missing, and no lock stays.
func TestMarks(t *testing.T) {
	t.Parallel()
	times := few
	if *kills > 0 {
		times = *kills
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute+time.Duration(times)*time.Minute)
	defer cancel()
	m, err := crashtest.NewMarks(ctx, built.program, t.TempDir(), built.marks, rand.New(rand.NewPCG(newSeed(t), 1)))
	if err != nil {
		t.Fatal(err)
	}
	for n := 0; n < times || n < 10*few && m.Accepted() == 0; n++ { // the first ones may come before anything is accepted
		if err := m.Kill(ctx); err != nil {
			t.Fatalf("kill %d: %v", n, err)
		}
	}
	runs, found, err := m.Settle(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found[:min(len(found), 20)] {
		t.Error(f)
	}
	if runs == 0 {
		t.Error("no run has ended: the load proves nothing")
	}
	t.Logf("kills: %v; %d runs, %d findings", m.Killed, runs, len(found))
}
