package crashtest_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/flowhost/flowhost/internal/crashtest"
)

// TestHostTellsLoss takes the journal away from a host that has served.
func TestHostTellsLoss(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	h := embedded(t)
	k := &crashtest.Killer{Host: h, Load: &crashtest.Load{Ledger: &crashtest.Ledger{}}, Rand: rand.New(greatest)}
	if err := k.Kill(ctx); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(h.Data, "jetstream", "*", "streams", "FH_JOURNAL", "msgs", "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("files of the journal: %v, %v", files, err)
	}
	for _, file := range files {
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
	var loss *crashtest.LossError
	if err := serves(ctx, t, h); !errors.As(err, &loss) {
		t.Errorf("without its journal, the host serves with %v, want a LossError", err)
	}
	h.Args = append(h.Args, "--durability", "unheard-of")
	if err := serves(ctx, t, h); err == nil || errors.As(err, &loss) {
		t.Errorf("with a wrong flag, the host serves with %v, want an error that tells no loss", err)
	}
}

func serves(ctx context.Context, t *testing.T, h *crashtest.Host) error {
	t.Helper()
	p, err := h.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer p.Kill()
	return h.Serves(ctx, p)
}

// TestKillerLeavesTheOnlyServer has the killer choose, as often as it can, to kill
// the server that leads the journal.
func TestKillerLeavesTheOnlyServer(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, err := crashtest.NewCluster(ctx, t.TempDir(), t.TempDir(), 1, "2m")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Stop)
	k := &crashtest.Killer{
		Host: &crashtest.Host{
			Program: built.program, Site: newSite(t, busy), Data: filepath.Join(t.TempDir(), "data"),
			Args: []string{"--nats", c.URL()}, Cluster: c,
		},
		Load: &crashtest.Load{Ledger: &crashtest.Ledger{}}, Rand: rand.New(least),
	}
	if err := k.Kill(ctx); err != nil || k.Leader > 0 {
		t.Errorf("the only server was killed %d times, %v", k.Leader, err)
	}
}

// always is a source that gives the same number again and again.
type always uint64

func (a always) Uint64() uint64 { return uint64(a) }

// The least choices and the greatest ones. Of a plain 0, rand makes no number: it
// asks for another one.
const (
	least    always = 1<<60 + 1<<20
	greatest always = 1<<64 - 1
)
