//go:build defects

package defects_test

import (
	"fmt"
	"syscall"
	"time"

	"github.com/flowhost/flowhost/run/wire"
)

// verdict is what an audit found.
type verdict int

const (
	intact      verdict = iota // everything that was acknowledged is there
	alarm                      // damage is reported, of a copy or of what nobody had acknowledged; nothing is lost
	reported                   // something is lost, and an error says so
	silent                     // something is lost, and nothing says so
	unavailable                // nothing could be read, and the error says so
)

func (v verdict) String() string {
	return [...]string{"intact", "false alarm", "reported loss", "SILENT LOSS", "unavailable"}[v]
}

// commit is one of the ledger.
type commit struct {
	revision uint64
	sum      uint32 // of its stored bytes
}

// ledger is what the journal and the stream of triggers have acknowledged. It
// belongs to the one goroutine that writes or audits.
type ledger struct {
	acked    []commit
	floor    uint64          // up to there commits may have been removed
	sent     map[uint32]bool // sums of all commits that were given to the journal
	triggers map[string]uint64
	asked    map[string]bool // ids of all triggers that were sent
}

func newLedger() *ledger {
	return &ledger{sent: map[uint32]bool{}, triggers: map[string]uint64{}, asked: map[string]bool{}}
}

// last is the last revision that was acknowledged.
func (l *ledger) last() uint64 {
	if len(l.acked) == 0 {
		return 0
	}
	return l.acked[len(l.acked)-1].revision
}

// reading is what one replay gave.
type reading struct {
	commits map[uint64]uint32
	last    uint64
	lastSum uint32
	mark    uint64 // the revision of the mark
	err     error
}

// chainError is the engine's own check: each commit names the one that it follows.
type chainError struct{ last, revision, after uint64 }

func (e *chainError) Error() string {
	return fmt.Sprintf("revision %d follows %d, and the last one that was read is %d", e.revision, e.after, e.last)
}

// lostEndError is the engine's own check: the journal was longer when it was marked.
type lostEndError struct{ last, mark uint64 }

func (e *lostEndError) Error() string {
	return fmt.Sprintf("the journal ends at revision %d, and its mark is at %d", e.last, e.mark)
}

// check applies what the engine checks of a commit.
func (r *reading) check(revision uint64, stored []byte) error {
	c, err := wire.DecodeCommit(stored)
	if err != nil {
		return fmt.Errorf("revision %d: %w", revision, err)
	}
	if c.After != r.last {
		return &chainError{r.last, revision, c.After}
	}
	r.last, r.lastSum = revision, wire.CommitSum(stored)
	r.commits[revision] = r.lastSum
	return nil
}

// judge lays a reading beside the ledger. lost counts commits.
func (l *ledger) judge(r *reading) (v verdict, lost int) {
	for _, c := range l.acked {
		if sum, ok := r.commits[c.revision]; c.revision > l.floor && (!ok || sum != c.sum) {
			lost++
		}
	}
	for _, sum := range r.commits {
		if !l.sent[sum] && r.err == nil {
			return silent, lost // a commit that nobody wrote
		}
	}
	switch {
	case r.err != nil && !damages(r.err):
		return unavailable, 0
	case r.err != nil && lost > 0:
		return reported, lost
	case r.err != nil:
		return alarm, 0
	case lost > 0:
		return silent, lost
	}
	return intact, 0
}

// counts are of a trial.
type counts struct {
	rounds, faults                int
	acked, triggers               int
	verdicts                      [unavailable + 1]int // of audits
	rejected                      int                  // appends that were refused because commits are missing
	lostCommits, silentCommits    int
	lostTriggers, visibleTriggers int // those that show as a gap are visible
	clusters                      int
	stuck                         int // replicas that did not catch up
	refused                       int // servers that refused to start
	removed                       int // servers, from a stream or the cluster
	led                           int // audits whose leader was the one that was asked for
}

func (c *counts) String() string {
	text := fmt.Sprintf("%d rounds on %d clusters, %d faults; acknowledged: %d commits, %d triggers; audits:", c.rounds, c.clusters, c.faults, c.acked, c.triggers)
	for v, n := range c.verdicts {
		text += fmt.Sprintf(" %d %s,", n, verdict(v))
	}
	return text + fmt.Sprintf(" lost commits: %d reported, %d silent; appends refused: %d; lost triggers: %d, of them %d visible as a gap; replicas stuck: %d; servers that refused their store: %d, removed: %d; audits with the leader asked for: %d",
		c.lostCommits, c.silentCommits, c.rejected, c.lostTriggers, c.visibleTriggers, c.stuck, c.refused, c.removed, c.led)
}

// machineTime is what this process and its ended children have used.
func machineTime() time.Duration {
	var total time.Duration
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if err := syscall.Getrusage(who, &u); err == nil {
			total += time.Duration(u.Utime.Nano() + u.Stime.Nano())
		}
	}
	return total
}
