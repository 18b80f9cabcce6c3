//go:build defects

// Package defects_test runs the known defects of the NATS server against what is
// stored by package bus: clusters of real servers in processes of their own, which
// are killed, parted and damaged while a journal is written, and a ledger outside
// of everything that was acknowledged.
//
// A server may lose what it has acknowledged: that is its defect. The verdict is
// about the promise of this project: such a loss is reported by an error that names
// it, and is never silent.
package defects_test

import (
	"flag"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/flowhost/flowhost/internal/crashtest"
)

var (
	minutes = flag.Float64("minutes", 2, "for each defect")
	seed    = flag.Uint64("seed", 0, "of the faults; default: a random one")
)

func TestMain(m *testing.M) {
	crashtest.ServeNATS()
	flag.Parse()
	goleak.VerifyTestMain(m, goleak.Cleanup(os.Exit))
}

// trial is the faults of one kind, injected again and again for the time of the
// flag.
type trial struct {
	*testing.T
	*rand.Rand
	until  time.Time
	counts counts
}

func newTrial(t *testing.T, share float64) *trial {
	from := *seed
	if from == 0 {
		from = rand.Uint64()
	}
	t.Logf("seed %d", from)
	tr := &trial{T: t, Rand: rand.New(rand.NewPCG(from, 1)), until: time.Now().Add(time.Duration(share * *minutes * float64(time.Minute)))}
	before := machineTime()
	t.Cleanup(func() { t.Logf("%v; machine time %s", &tr.counts, (machineTime() - before).Round(time.Second)) })
	return tr
}

// more reports whether there is time for another round. There is always one.
func (tr *trial) more() bool {
	return tr.Context().Err() == nil && (tr.counts.rounds == 0 || time.Now().Before(tr.until))
}
