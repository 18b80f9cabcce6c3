package engine

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flowhost/flowhost/engine/memory"
	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
)

// fails boots an engine that must not start, and gives the reason.
func (m *remains) fails(config Config) error {
	m.t.Helper()
	config.Invoker, config.Restore = guests{}, restore
	ctx, stop := context.WithTimeout(m.t.Context(), time.Minute)
	defer stop()
	err := New(config).Run(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		m.t.Fatal("the engine runs")
	}
	return err
}

// history is what is left of some runs, the last of them under way, when there
// are two snapshots and a shorter journal. After one round there is one snapshot.
func history(t *testing.T, set *flows.Set, rounds int) *remains {
	t.Helper()
	m := newRemains(t)
	config := m.config()
	config.Invoker = slowly(time.Minute + time.Second)
	r := boot(t, config, set)
	for range rounds {
		r.submit("f", text("x", largeSize))
		if rounds > 1 {
			time.Sleep(150 * time.Second)
		}
	}
	for rounds == 1 && len(m.snapshots()) == 0 {
		time.Sleep(time.Second)
	}
	r.crash()
	return m
}

// goOn lets an engine finish everything, and gives what an observer receives.
func (m *remains) goOn(config Config, set *flows.Set) finished {
	m.t.Helper()
	told := finished{}
	config.Observers = append(config.Observers, Observation{Observer: told, CatchUp: true})
	r := boot(m.t, config, set)
	time.Sleep(time.Hour)
	if n := m.journal.open(); n > 0 {
		m.t.Errorf("%d runs are not finished", n)
	}
	r.Drain()
	if err := <-r.ended; err != nil {
		m.t.Error(err)
	}
	r.kill()
	return told
}

func (m *remains) snapshots() []uint64 {
	names, err := m.shelf.List(m.t.Context())
	if err != nil {
		m.t.Fatal(err)
	}
	return revisionsOf(names)
}

// spoil changes stored bytes.
func (m *remains) spoil(s *memory.Store, name string, how func([]byte) []byte) {
	m.t.Helper()
	data, err := s.Get(m.t.Context(), name)
	if err != nil {
		m.t.Fatal(err)
	}
	s.Put(m.t.Context(), name, how(data))
}

func cutOff(data []byte) []byte { return data[:len(data)/2] }

func flipped(data []byte) []byte {
	data[len(data)/2] ^= 4
	return data
}

func nothing([]byte) []byte { return nil }

// The older snapshot and the journal make up for the newest one.
func TestDamagedSnapshotIsMadeUpFor(t *testing.T) {
	t.Parallel()
	set := load(t, largeHCL)
	for name, how := range map[string]func([]byte) []byte{"torn": cutOff, "a bit": flipped, "empty": nothing} {
		synctest.Test(t, func(t *testing.T) {
			m := history(t, set, 6)
			revisions := m.snapshots()
			if len(revisions) != 2 || m.journal.Removed() != revisions[1] {
				t.Fatalf("there are snapshots %v, and the journal is removed up to %d", revisions, m.journal.Removed())
			}
			m.spoil(&m.shelf.Store, snapshotName(revisions[0]), how)
			open := m.journal.open()
			if told := m.goOn(m.config(), set); len(told) < open {
				t.Errorf("%s: %d runs were open, and an observer is told of the end of %d", name, open, len(told))
			}
		})
	}
}

// Without any snapshot it is said what is missing. Nothing is skipped.
func TestWithoutSnapshotsAShortenedJournalIsRefused(t *testing.T) {
	t.Parallel()
	set := load(t, largeHCL)
	for name, how := range map[string]func([]byte) []byte{"torn": cutOff, "a bit": flipped} {
		synctest.Test(t, func(t *testing.T) {
			m := history(t, set, 6)
			revisions, last := m.snapshots(), m.journal.last()
			for _, revision := range revisions {
				m.spoil(&m.shelf.Store, snapshotName(revision), how)
			}
			err, want := m.fails(m.config()), ChainError{Last: 0, Revision: revisions[1] + 1, After: revisions[1]}
			if chain := (*ChainError)(nil); !errors.As(err, &chain) || *chain != want {
				t.Errorf("%s: the engine ends with %v, want %v", name, err, &want)
			}
			if m.journal.last() != last || len(m.snapshots()) != 2 {
				t.Errorf("%s: something was changed", name)
			}
		})
	}
}

// As long as there is one snapshot only the journal is whole.
func TestFirstSnapshotMayBeDamaged(t *testing.T) {
	t.Parallel()
	set := load(t, largeHCL)
	synctest.Test(t, func(t *testing.T) {
		m := history(t, set, 1)
		if len(m.snapshots()) != 1 {
			t.Fatalf("there are snapshots %v", m.snapshots())
		}
		m.spoil(&m.shelf.Store, snapshotName(m.snapshots()[0]), cutOff)
		if told := m.goOn(m.config(), set); len(told) != 1 {
			t.Errorf("%d runs are finished, want 1", len(told))
		}
	})
}

// A journal that has lost its end continues with other commits of the same
// revisions. A snapshot of what was lost must not be taken for one of these.
func TestSnapshotOfWhatTheJournalHasLost(t *testing.T) {
	t.Parallel()
	set := load(t, largeHCL)
	synctest.Test(t, func(t *testing.T) {
		m := newRemains(t)
		config := m.config()
		config.Invoker = slowly(time.Minute + time.Second)
		r := boot(t, config, set)
		r.submit("f", text("x", largeSize))
		for len(m.snapshots()) == 0 {
			r.decide(1)
		}
		r.crash()
		lost := m.snapshots()[0]
		m.journal = lostEnd(t, m, lost-1)
		m.shelf.ledger = m.journal
		r = boot(t, m.config(), set)
		for m.journal.last() < lost+1 {
			r.submit("f", text("y", 10))
			time.Sleep(time.Second)
		}
		r.crash()
		m.goOn(m.config(), set)
	})
}

// lostEnd gives a journal with what another one held up to a revision.
func lostEnd(t *testing.T, m *remains, revision uint64) *ledger {
	t.Helper()
	cut := newLedger(t, &m.diary, m.vault)
	err := m.journal.Replay(t.Context(), 0, func(at uint64, commit []byte) error {
		if at > revision {
			return nil
		}
		_, err := cut.Append(t.Context(), at-1, commit)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return cut
}

// A journal that is gone while snapshots tell of it is no new journal.
func TestJournalThatIsGoneIsNotBegunAnew(t *testing.T) {
	t.Parallel()
	set := load(t, largeHCL)
	synctest.Test(t, func(t *testing.T) {
		m := history(t, set, 6)
		config := m.config()
		config.Journal = memory.NewJournal()
		if err := m.fails(config); !errors.As(err, new(*ChainError)) {
			t.Errorf("the engine ends with %v", err)
		}
	})
}

// holed is a journal that gives other bytes for some revisions, or none.
type holed struct {
	Journal
	instead map[uint64]func([]byte) []byte
}

func (h holed) Replay(ctx context.Context, after uint64, apply func(uint64, []byte) error) error {
	return h.Journal.Replay(ctx, after, func(revision uint64, commit []byte) error {
		how, other := h.instead[revision]
		if !other {
			return apply(revision, commit)
		}
		if commit = how(commit); commit == nil {
			return nil
		}
		return apply(revision, commit)
	})
}

func TestDamageOfTheJournalIsToldWithItsPlace(t *testing.T) {
	t.Parallel()
	set := load(t, largeHCL)
	synctest.Test(t, func(t *testing.T) {
		m := history(t, set, 6)
		r := boot(t, Config{Journal: m.journal, Blobs: m.vault, Snapshots: readOnlyStore{m.shelf}, Invoker: slowly(time.Hour)}, set)
		r.decide(3)
		r.crash()
		newest, last := m.snapshots()[0], m.journal.last()
		if last < newest+2 {
			t.Fatalf("the newest snapshot is of %d, and the journal ends at %d", newest, last)
		}
		config := m.config()
		for name, c := range map[string]struct {
			revision uint64
			how      func([]byte) []byte
			chain    *ChainError
			damaged  bool
			want     string
		}{
			"a hole":    {newest + 1, nothing, &ChainError{Last: newest, Revision: newest + 2, After: newest + 1}, false, "salvaged"},
			"a bit":     {newest + 1, flipped, nil, true, fmt.Sprintf("revision %d: ", newest+1)},
			"torn":      {newest + 1, cutOff, nil, true, fmt.Sprintf("revision %d: ", newest+1)},
			"the last":  {last, flipped, nil, true, fmt.Sprintf("revision %d: ", last)},
			"a new one": {newest + 1, func(b []byte) []byte { b[1]++; return b }, nil, false, "a newer flowhost is needed"},
		} {
			config.Journal = holed{m.journal, map[uint64]func([]byte) []byte{c.revision: c.how}}
			err := m.fails(config)
			if err == nil || !strings.Contains(err.Error(), c.want) || errors.Is(err, run.ErrDamaged) != c.damaged {
				t.Errorf("%s: the engine ends with %v, want %q", name, err, c.want)
			}
			if chain := (*ChainError)(nil); errors.As(err, &chain) != (c.chain != nil) || chain != nil && *chain != *c.chain {
				t.Errorf("%s: the engine ends with %v, want %v", name, err, c.chain)
			}
		}
		if m.journal.last() != last {
			t.Errorf("something was written behind the damage")
		}
		m.goOn(m.config(), set)
	})
}

// A run whose large value is lost ends, with a record that others can read. It
// does not take others with it.
func TestLostBlobEndsItsRunOnly(t *testing.T) {
	t.Parallel()
	set := load(t, largeHCL)
	for name, how := range map[string]func(*remains, string){
		"missing": func(m *remains, blob string) { m.vault.Store.Delete(m.t.Context(), blob) },
		"damaged": func(m *remains, blob string) { m.spoil(&m.vault.Store, blob, flipped) },
		"empty":   func(m *remains, blob string) { m.spoil(&m.vault.Store, blob, nothing) },
	} {
		for _, snapshots := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				m := newRemains(t)
				config := m.config()
				config.Invoker = slowly(time.Minute + time.Second)
				if !snapshots {
					config.Snapshots = nil
				}
				r := boot(t, config, set)
				harmed := r.submit("f", text("x", largeSize))
				others := []run.ID{r.submit("f", text("y", largeSize)), r.submit("f", `"z"`)}
				time.Sleep(90 * time.Second)
				r.crash()
				blobs, _ := m.vault.List(t.Context())
				if len(blobs) != 2 {
					t.Fatalf("there are %d blobs", len(blobs))
				}
				for _, blob := range blobs {
					if bytes.HasPrefix(m.vault.whole(refTo(t, blob)), []byte(`"x`)) {
						how(m, blob)
					}
				}
				config.Invoker = nil
				told := m.goOn(config, set)
				record := told[harmed]
				if record == nil || record.State != run.Failed || record.Error.Code != run.CodeDefinition || !strings.Contains(record.Error.Message, "large value") {
					t.Fatalf("%s: the run without its value: %+v", name, record)
				}
				if _, err := run.EncodeJSON(record); err != nil {
					t.Errorf("%s: its record: %v", name, err)
				}
				for _, id := range others {
					if told[id] == nil || told[id].State != run.Succeeded {
						t.Errorf("%s: another run: %+v", name, told[id])
					}
				}
			})
		}
	}
}

// refTo is what a decoded event has in place of a value.
func refTo(t *testing.T, name string) json.RawMessage {
	t.Helper()
	digest, err := hex.DecodeString(name)
	if err != nil {
		t.Fatal(err)
	}
	return append([]byte{0}, digest...)
}

// gone is a store that does not answer for a while.
type gone struct {
	Store
	until time.Time
}

func (g gone) Get(ctx context.Context, name string) ([]byte, error) {
	if time.Now().Before(g.until) {
		return nil, errors.New("no answer")
	}
	return g.Store.Get(ctx, name)
}

// A store of blobs that cannot be reached costs time, not runs.
func TestBlobsThatCannotBeReachedAreWaitedFor(t *testing.T) {
	t.Parallel()
	set := load(t, largeHCL)
	synctest.Test(t, func(t *testing.T) {
		m := history(t, set, 3)
		ids := m.journal.openRuns()
		config := m.config()
		config.Blobs = gone{m.vault, time.Now().Add(time.Minute)}
		told := m.goOn(config, set)
		for _, id := range ids {
			if told[id] == nil || told[id].State != run.Succeeded {
				t.Errorf("run %s: %+v", id, told[id])
			}
		}
	})
}

func (l *ledger) openRuns() []run.ID {
	l.mu.Lock()
	defer l.mu.Unlock()
	return sortedKeys(l.shard.Runs)
}

// A blob is kept as long as a commit after the older snapshot refers to it, also
// when a snapshot between could not be stored.
func TestBlobsServeTheOlderSnapshot(t *testing.T) {
	t.Parallel()
	set := load(t, largeHCL)
	synctest.Test(t, func(t *testing.T) {
		m := newRemains(t)
		config, store := m.config(), &refusing{Store: m.shelf}
		config.Snapshots = store
		r := boot(t, config, set)
		r.decide(3)
		older := m.snapshots()[0]
		r.wait(r.submit("f", text("x", largeSize)))
		store.refuses.Store(true)
		r.decide(3)
		if store.refused.Load() == 0 {
			t.Fatal("no snapshot was refused")
		}
		store.refuses.Store(false)
		r.decide(1)
		if !slices.Contains(m.snapshots(), older) || len(m.snapshots()) != 2 {
			t.Fatalf("there are snapshots %v", m.snapshots())
		}
		if blobs, _ := m.vault.List(t.Context()); len(blobs) == 0 {
			t.Error("the value is removed")
		}
		r.decide(3)
		if blobs, _ := m.vault.List(t.Context()); len(blobs) > 0 {
			t.Error("the value is still kept when nothing refers to it any more")
		}
		r.crash()
	})
}

// refusing is a store that takes nothing for a while.
type refusing struct {
	Store
	refuses atomic.Bool
	refused atomic.Int64
}

func (s *refusing) Put(ctx context.Context, name string, data []byte) error {
	if s.refuses.Load() {
		s.refused.Add(1)
		return errors.New("the disk is full")
	}
	return s.Store.Put(ctx, name, data)
}

// readOnlyStore takes nothing.
type readOnlyStore struct{ Store }

func (readOnlyStore) Put(context.Context, string, []byte) error {
	return errors.New("the disk is full")
}
