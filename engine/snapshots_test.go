package engine

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flowhost/flowhost/run"
)

// keeper is a store of snapshots and a journal that remember what was done to
// them and when. The journal is not shortened, so that it can tell the truth.
type keeper struct {
	*MemoryJournal
	Store
	mu       sync.Mutex
	made     []madeSnapshot
	compacts []uint64
	hold     chan struct{} // nil: puts do not wait
	putting  gauge
}

type madeSnapshot struct {
	at       time.Time
	revision uint64
	stored   []byte
}

func newKeeper() *keeper {
	return &keeper{MemoryJournal: NewMemoryJournal(), Store: NewMemoryStore()}
}

func (k *keeper) Put(ctx context.Context, name string, data []byte) error {
	k.putting.add(1)
	defer k.putting.add(-1)
	k.mu.Lock()
	revision, _ := snapshotRevision(name)
	k.made = append(k.made, madeSnapshot{time.Now(), revision, slices.Clone(data)})
	hold := k.hold
	k.mu.Unlock()
	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return k.Store.Put(ctx, name, data)
}

func (k *keeper) Compact(_ context.Context, upTo uint64) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.compacts = append(k.compacts, upTo)
	return nil
}

func (k *keeper) snapshots() []madeSnapshot {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.made)
}

func (k *keeper) compacted() []uint64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.compacts)
}

// between counts the events after one revision and up to another.
func (k *keeper) between(t *testing.T, after, upTo uint64) int {
	t.Helper()
	n := 0
	k.Replay(t.Context(), after, func(revision uint64, stored []byte) error {
		if revision <= upTo {
			commit, err := run.DecodeCommit(stored)
			if err != nil {
				t.Fatal(err)
			}
			n += len(commit.Events)
		}
		return nil
	})
	return n
}

// Under load a snapshot comes after so many events, more for many open runs, but
// not before the pause is over.
func TestSnapshotsComeWithEvents(t *testing.T) {
	t.Parallel()
	set := load(t, twoFlowsHCL)
	for name, c := range map[string]struct {
		events, open int
		pace         time.Duration // of runs of 5 events
	}{
		"some events":                    {100, 0, 200 * time.Millisecond},
		"so many that the pause decides": {100, 0, 10 * time.Millisecond},
		"many open runs":                 {10, 150, 50 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				k := newKeeper()
				r := boot(t, Config{Journal: k, Snapshots: k, Workers: 4, SnapshotEvents: c.events, Invoker: invokerFunc(quickAndSlow)}, set)
				before, from := uint64(0), time.Now()
				for range c.open {
					r.submit("slow", `null`)
				}
				for time.Since(from) < 50*time.Second {
					r.submit("quick", `null`)
					time.Sleep(c.pace)
				}
				enough := max(c.events, snapshotShare*c.open)
				made := k.snapshots()
				for _, s := range made {
					n, pause := k.between(t, before, s.revision), s.at.Sub(from)
					if n < enough || pause < snapshotPause {
						t.Errorf("a snapshot comes after %d events, of %d, and %s", n, enough, pause)
					}
					if n > enough+2*5 && pause > snapshotPause+c.pace {
						t.Errorf("a snapshot comes after %d events, %d are enough, and %s", n, enough, pause)
					}
					before, from = s.revision, s.at
				}
				if len(made) < 3 {
					t.Errorf("%d snapshots were made", len(made))
				}
				r.crash()
			})
		})
	}
}

func TestOneSnapshotAtATime(t *testing.T) {
	t.Parallel()
	set := load(t, twoFlowsHCL)
	synctest.Test(t, func(t *testing.T) {
		k := newKeeper()
		k.hold = make(chan struct{})
		r := boot(t, Config{Journal: k, Snapshots: k, SnapshotEvents: 10}, set)
		work := func() {
			for range 100 {
				r.run("quick", `null`) // goes on meanwhile
				time.Sleep(2 * time.Second)
			}
		}
		work()
		if n := len(k.snapshots()); n != 1 || k.putting.most != 1 {
			t.Errorf("%d snapshots were made while the first one was being stored", n)
		}
		close(k.hold)
		work()
		if n := len(k.snapshots()); n < 10 || k.putting.most != 1 {
			t.Errorf("%d snapshots were made afterwards, %d at once", n, k.putting.most)
		}
		r.stop()
	})
}

// slow is a journal that takes its time, so that events come while a snapshot
// waits for its revision.
type slow struct{ *keeper }

func (s *slow) Append(ctx context.Context, after uint64, commit []byte) (uint64, error) {
	time.Sleep(10 * time.Millisecond)
	return s.keeper.Append(ctx, after, commit)
}

func definitionsOf(t *testing.T, s madeSnapshot) []string {
	t.Helper()
	shard, _, err := run.DecodeSnapshot(s.stored)
	if err != nil {
		t.Fatal(err)
	}
	return slices.Sorted(maps.Keys(shard.Definitions))
}

// hesitant is an observer that takes notices and makes them safe when it is told
// to.
type hesitant struct {
	mu      sync.Mutex
	blocked chan struct{} // nil while it takes notices
	flush   error
	told    uint64 // the revision of the last notice
	flushed uint64 // told, when it was flushed last
}

func (h *hesitant) Committed(ctx context.Context, n run.Notice) error {
	h.mu.Lock()
	blocked := h.blocked
	h.mu.Unlock()
	if blocked != nil {
		select {
		case <-blocked:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.told = n.Revision
	return nil
}

func (h *hesitant) Flush(context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.flush == nil {
		h.flushed = h.told
	}
	return h.flush
}

func (h *hesitant) set(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f()
}

func TestJournalKeepsWhatObserversDoNotHave(t *testing.T) {
	t.Parallel()
	set := load(t, twoFlowsHCL)
	synctest.Test(t, func(t *testing.T) {
		k, quick, o := newKeeper(), &notices{}, &hesitant{}
		r := boot(t, Config{Journal: k, Snapshots: k, Observers: []Observation{{Observer: quick}, {Observer: o}}}, set)
		minutes := func(n int) (compacts []uint64) {
			t.Helper()
			before := len(k.compacted())
			for range n {
				r.submit("quick", `null`)
				time.Sleep(snapshotAge + time.Second)
				compacts = k.compacted()[before:]
				made := k.snapshots()
				for _, upTo := range compacts {
					if len(made) < 2 || upTo > made[len(made)-2].revision {
						t.Errorf("the journal is shortened to %d, snapshots are %v", upTo, revisions(made))
					}
					o.set(func() {
						if upTo > o.flushed {
							t.Errorf("the journal is shortened to %d, the observer has %d safe", upTo, o.flushed)
						}
					})
				}
			}
			return compacts
		}
		if n := len(minutes(5)); n < 2 {
			t.Errorf("the journal was shortened %d times in 5 minutes", n)
		}
		blocked := make(chan struct{})
		o.set(func() { o.blocked = blocked })
		minutes(1)
		if compacts := minutes(5); len(compacts) > 0 && compacts[len(compacts)-1] > o.told {
			t.Errorf("the journal is shortened to %v, the observer was told up to %d", compacts, o.told)
		}
		o.set(func() { o.blocked, o.flush = nil, errors.New("no space is left") })
		close(blocked)
		if compacts := minutes(5); len(compacts) != 0 {
			t.Errorf("the journal is shortened to %v, the observer cannot make anything safe", compacts)
		}
		o.set(func() { o.flush = nil })
		if n := len(minutes(5)); n < 2 {
			t.Errorf("the journal was shortened %d times once the observer was well", n)
		}
		if n := len(names(t, k.Store)); n != 2 {
			t.Errorf("%d snapshots are kept, want two", n)
		}
		r.stop()
	})
}

func revisions(made []madeSnapshot) (all []uint64) {
	for _, s := range made {
		all = append(all, s.revision)
	}
	return all
}
