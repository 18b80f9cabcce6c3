package crashtest_test

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/flowhost/flowhost/internal/crashtest"
)

// TestKill kills the host at random moments, under load. Afterwards everything
// that was acknowledged has one run with one end, and nothing else is there.
func TestKill(t *testing.T) {
	t.Parallel()
	modes := map[string]func(*testing.T) *crashtest.Host{
		"strict":   func(t *testing.T) *crashtest.Host { return embedded(t, "--durability", "strict") },
		"relaxed":  func(t *testing.T) *crashtest.Host { return embedded(t, "--durability", "relaxed") },
		"replicas": replicated,
	}
	for mode, host := range modes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			killAgainAndAgain(t, host(t))
		})
	}
}

// few is how often a host is killed when the flag says nothing.
const few = 3

// killAgainAndAgain kills a host so often as the flag says, few times without it. These
// may all come before anything was accepted: then it continues for a while.
func killAgainAndAgain(t *testing.T, h *crashtest.Host) {
	t.Helper()
	times := few
	if *kills > 0 {
		times = *kills
	}
	from := newSeed(t)
	book := &crashtest.Ledger{}
	k := &crashtest.Killer{
		Host: h, Rand: rand.New(rand.NewPCG(from, 1)),
		Load: &crashtest.Load{Ledger: book, Name: "k", Seed: from},
	}
	for n := 0; n < times || n < 10*few && book.Count()[crashtest.Accepted] == 0; n++ {
		if err := k.Kill(t.Context()); err != nil {
			t.Fatalf("kill %d: %v", n, err)
		}
		if (n+1)%50 == 0 {
			t.Logf("%d kills, %v", n+1, book.Count())
		}
	}
	settle(t, k)
	t.Logf("kills: %v, of the leader: %d; starts without a usable NATS server: %d", k.Killed, k.Leader, k.GaveUp)
}

// newSeed is the flag's, or a random one that the log names.
func newSeed(t *testing.T) uint64 {
	from := *seed
	if from == 0 {
		from = rand.Uint64()
	}
	t.Logf("seed %d", from)
	return from
}

// settle lets the last runs end and reports all findings.
func settle(t *testing.T, k *crashtest.Killer) {
	t.Helper()
	began := time.Now()
	a, found, err := k.Settle(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	report(t, k.Load.Ledger, a, found)
	t.Logf("settled within %s", time.Since(began).Round(time.Millisecond))
}

// report shows what was found, the first ones of much in full.
func report(t *testing.T, book *crashtest.Ledger, a *crashtest.Archive, found []crashtest.Finding) {
	t.Helper()
	rules := map[crashtest.Rule]int{}
	for _, f := range found {
		if rules[f.Rule]++; rules[f.Rule] <= 5 {
			t.Error(f)
		}
	}
	if len(found) > 0 {
		t.Errorf("%d findings: %v", len(found), rules)
	}
	count := book.Count()
	if count[crashtest.Accepted] == 0 {
		t.Error("nothing was accepted: the load proves nothing")
	}
	t.Logf("asked for: %v; %d runs ended, %d in the history, %d events", count, len(a.Ends), len(a.History), a.Events)
}

// embedded is a host with its own NATS server.
func embedded(t *testing.T, args ...string) *crashtest.Host {
	t.Helper()
	h, err := crashtest.NewHost(built.program, newSite(t, busy), filepath.Join(t.TempDir(), "data"), args...)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// busy are settings with which snapshots are frequent, and with which all events
// and records of a long test are kept.
const busy = `
journal {
  size           = "30MB"
  snapshot_every = 500
}

events {
  size = "3GB"
}

history {
  per_flow = 10000000
}
`

func newSite(t *testing.T, settings string) *crashtest.Site {
	t.Helper()
	site, err := crashtest.NewSite(filepath.Join(t.TempDir(), "site"), built.module, settings)
	if err != nil {
		t.Fatal(err)
	}
	return site
}

// replicated is a host on three servers.
func replicated(t *testing.T) *crashtest.Host {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, err := crashtest.NewCluster(ctx, t.TempDir(), t.TempDir(), 3, "2m")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Stop)
	return &crashtest.Host{
		Program: built.program, Site: newSite(t, busy+"nats {\n  replicas = 3\n}\n"), Data: filepath.Join(t.TempDir(), "data"),
		Args: []string{"--nats", c.URL()}, Cluster: c,
	}
}
