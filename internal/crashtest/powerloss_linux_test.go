//go:build powerloss

package crashtest_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/flowhost/flowhost/internal/crashtest"
)

var cuts = flag.Int("cuts", 20, "how often to cut the power in each mode")

// TestPowerLoss cuts the power at random moments, under load.
//
// In strict mode nothing that was acknowledged is lost. In relaxed mode what is
// lost was acknowledged in the moments before a cut. With a NATS server that
// does not sync, much must be lost: the check finds it, or the host does and
// refuses to start. It shows that the test can fail.
func TestPowerLoss(t *testing.T) {
	t.Run("strict", func(t *testing.T) {
		k, _, err := powerless(t, onDisk(t, 2<<30, "--durability", "strict"))
		if err != nil {
			t.Fatal(err)
		}
		settle(t, k)
	})
	t.Run("relaxed", func(t *testing.T) {
		k, times, err := powerless(t, onDisk(t, 2<<30, "--durability", "relaxed"))
		if err != nil {
			t.Fatal(err)
		}
		a, found, err := k.Settle(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		recent, rest := near(found, times, 300*time.Millisecond)
		t.Logf("%d findings are of the 300 ms before a cut", len(recent))
		report(t, k.Load.Ledger, a, rest)
	})
	t.Run("unsynced", func(t *testing.T) {
		k, _, err := powerless(t, unsynced(t))
		var a *crashtest.Archive
		var found []crashtest.Finding
		if err == nil {
			a, found, err = k.Settle(t.Context())
		}
		var loss *crashtest.LossError
		switch {
		case errors.As(err, &loss):
			t.Logf("as it should be: %v", err)
		case err != nil:
			t.Fatal(err)
		case len(found) == 0:
			t.Error("nothing is lost: the power was not cut, or the check sees nothing")
		default:
			t.Logf("as it should be: %d findings in %d runs", len(found), len(a.Ends))
		}
	})
}

// powerless cuts the power again and again, until the host does not come up. It
// gives the times of the cuts.
func powerless(t *testing.T, g grid) (*crashtest.Killer, []time.Time, error) {
	t.Helper()
	from := newSeed(t)
	var times []time.Time
	k := &crashtest.Killer{
		Host: g.Host, Rand: rand.New(rand.NewPCG(from, 2)),
		Load: &crashtest.Load{Ledger: &crashtest.Ledger{}, Name: "p", Seed: from, Workers: 16, Rate: 300},
	}
	k.End = func(p *crashtest.Process) error {
		at, err := g.cut(t.Context(), p)
		times = append(times, at)
		t.Logf("cut at %s, mounted after %s", at.Format(time.StampMilli), time.Since(at).Round(time.Millisecond))
		return err
	}
	for n := range *cuts {
		if err := k.Kill(t.Context()); err != nil {
			return k, times, fmt.Errorf("cut %d: %w", n, err)
		}
	}
	t.Logf("cuts: %v", k.Killed)
	return k, times, nil
}

// cut stops everything that uses the disk, cuts its power, ends what is stopped
// and mounts the disk again.
func (g grid) cut(ctx context.Context, p *crashtest.Process) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute) // a disk that is still in use stays so
	defer cancel()
	users := []*crashtest.Process{p}
	if g.Cluster != nil {
		users = append(users, g.Cluster.Nodes[0].Process())
	}
	err := crashtest.Freeze(ctx, users...)
	at := time.Now()
	if err == nil {
		err = g.disk.Cut()
	}
	p.Kill()
	if g.Cluster != nil {
		g.Cluster.Nodes[0].Kill()
	}
	if err == nil {
		err = g.disk.Unmount(ctx)
	}
	if err == nil {
		err = g.disk.Mount(ctx)
	}
	if err == nil && g.Cluster != nil {
		err = g.Cluster.Nodes[0].Start()
	}
	return at, err
}

// unsynced is a host on a NATS server with the server's own default: it syncs
// every two minutes.
func unsynced(t *testing.T) grid {
	t.Helper()
	d := newDisk(t, 2<<30)
	c, err := crashtest.NewCluster(t.Context(), t.TempDir(), d.Dir, 1, "2m")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Stop()
		if t.Failed() {
			t.Logf("the NATS server said:\n%s", c.Nodes[0].Process().Output())
		}
	})
	h := &crashtest.Host{
		Program: built.program, Site: newSite(t, busy), Data: filepath.Join(t.TempDir(), "data"),
		Args: []string{"--nats", c.URL()}, Cluster: c,
	}
	return grid{h, d}
}

// near parts findings about what was told, or accepted, shortly before a cut from
// the others.
func near(found []crashtest.Finding, cuts []time.Time, before time.Duration) (recent, rest []crashtest.Finding) {
	for _, f := range found {
		excused := false
		for _, cut := range cuts {
			if ago := cut.Sub(f.At()); ago > -100*time.Millisecond && ago < before {
				excused = true
			}
		}
		if excused {
			recent = append(recent, f)
		} else {
			rest = append(rest, f)
		}
	}
	return recent, rest
}
