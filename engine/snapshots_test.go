package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/flowhost/flowhost/engine/memory"
	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/run/wire"
)

// keeper is a store of snapshots and a journal that remember what was done to
// them and when. The journal is not shortened, so that it can tell the truth.
type recordingStore struct {
	*memory.Journal
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

func newKeeper() *recordingStore {
	return &recordingStore{Journal: memory.NewJournal(), Store: memory.NewStore()}
}

func (k *recordingStore) Put(ctx context.Context, name string, data []byte) error {
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

func (k *recordingStore) Compact(_ context.Context, upTo uint64) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.compacts = append(k.compacts, upTo)
	return nil
}

func (k *recordingStore) snapshots() []madeSnapshot {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.made)
}

func (k *recordingStore) compacted() []uint64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.compacts)
}

// between counts the events after one revision and up to another.
func (k *recordingStore) between(t *testing.T, after, upTo uint64) int {
	t.Helper()
	n := 0
	k.Replay(t.Context(), after, func(revision uint64, stored []byte) error {
		if revision <= upTo {
			commit, err := wire.DecodeCommit(stored)
			if err != nil {
				t.Fatal(err)
			}
			n += len(commit.Events)
		}
		return nil
	})
	return n
}

func TestSnapshotsComeWithTime(t *testing.T) {
	t.Parallel()
	set := load(t, twoFlowsHCL)
	for name, busy := range map[string]bool{"when nothing is under way": false, "while an attempt is": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				k := newKeeper()
				r := boot(t, Config{Journal: k, Snapshots: k, Invoker: invokerFunc(quickAndSlow), Timeout: 24 * time.Hour}, set)
				start := time.Now()
				time.Sleep(time.Hour)
				if n := len(k.snapshots()); n != 0 {
					t.Errorf("%d snapshots were made of nothing", n)
				}
				if busy {
					r.submit("slow", `null`)
				}
				for range 30 {
					r.run("quick", `null`)
					time.Sleep(10 * time.Second)
				}
				made := k.snapshots()
				if n := len(made); n < 3 || n > 6 {
					t.Errorf("%d snapshots were made in 5 minutes of a run now and then, want one a minute", n)
				}
				for i, s := range made {
					if i > 0 && s.at.Sub(made[i-1].at) < snapshotAge {
						t.Errorf("snapshot %d comes %s after the one before", i, s.at.Sub(made[i-1].at))
					}
				}
				time.Sleep(3 * snapshotAge)
				n := len(k.snapshots())
				time.Sleep(20 * time.Minute)
				if more := len(k.snapshots()) - n; more != 0 {
					t.Errorf("%d snapshots were made of what had one (%s after the start)", more, time.Since(start))
				}
				r.crash()
			})
		})
	}
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
				for i, s := range made {
					n, pause := k.between(t, before, s.revision), s.at.Sub(from)
					if n < enough || i > 0 && pause < r.exec.commits.pause() {
						t.Errorf("a snapshot comes after %d events, of %d, and %s", n, enough, pause)
					}
					if n > enough+2*5 && (i == 0 || pause > r.exec.commits.pause()+c.pace) {
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

// A snapshot is the state of one moment although it is written bit by bit, while
// runs come, change and go.
func TestSnapshotsAreWhatTheJournalTells(t *testing.T) {
	t.Parallel()
	set := load(t, `
flow "f" {
  task "a" { plugin = "./m.wasm" }
  task "b" { plugin = "./m.wasm" }
  task "c" {
    plugin = "./m.wasm"
    after  = [task.a, task.b]
  }
}`)
	synctest.Test(t, func(t *testing.T) {
		k, rng, began := newKeeper(), rand.New(rand.NewPCG(1, 5)), time.Now()
		r := boot(t, Config{
			Journal: &slow{k}, Snapshots: k, Workers: 500, Timeout: 24 * time.Hour, Invoker: invokerFunc(takes(10 * time.Hour)),
		}, set)
		var ids []run.ID
		for range 300 {
			ids = append(ids, r.submit("f", `null`))
		}
		for round := range 5 {
			// The loop is held up until many commands and the tick that makes a snapshot
			// wait for it: it takes them in any order.
			time.Sleep(snapshotAge - time.Since(began)%snapshotAge - time.Second)
			letGo := make(chan struct{})
			var asking sync.WaitGroup
			asking.Go(func() { r.onLoop(func() { <-letGo }) })
			synctest.Wait()
			for i := range 250 {
				id, ctx := ids[rng.IntN(len(ids))], t.Context()
				switch rng.IntN(6) {
				case 0:
					asking.Go(func() { r.Cancel(ctx, id, "") })
				case 1:
					request := keyed("f", fmt.Sprint("k", round, i), `null`)
					request.Position = run.Position{Source: fmt.Sprint("s", i%10), Seq: uint64(round + 1)}
					asking.Go(func() { r.Submit(ctx, request) })
				default:
					ref := run.TaskRef{Task: []string{"a", "b", "c"}[rng.IntN(3)]}
					asking.Go(func() { r.CancelTask(ctx, id, ref, "") })
				}
			}
			time.Sleep(2 * time.Second)
			close(letGo)
			asking.Wait()
		}
		for _, id := range ids {
			r.Cancel(t.Context(), id, "")
		}
		time.Sleep(11 * time.Hour)
		r.stop()
		crowded := 0
		for _, s := range k.snapshots() {
			got, revision, err := wire.DecodeSnapshot(s.stored)
			if err != nil || revision != s.revision {
				t.Fatalf("snapshot %d is of revision %d, %v", s.revision, revision, err)
			}
			want := fold(t, prefix(t, k, s.revision))
			maps.DeleteFunc(want.Runs, func(_ run.ID, r *run.Run) bool { return r.State.Done() })
			if diff := cmp.Diff(want.Runs, got.Runs, cmpopts.IgnoreUnexported(run.Run{}, run.TaskRun{})); diff != "" {
				t.Errorf("snapshot %d differs from the journal up to there (-journal +snapshot):\n%s", s.revision, diff)
			}
			if diff := cmp.Diff(want.Watermarks, got.Watermarks); diff != "" {
				t.Errorf("watermarks of snapshot %d differ:\n%s", s.revision, diff)
			}
			if want.Keys.Len() != got.Keys.Len() {
				t.Errorf("snapshot %d has %d keys, the journal %d", s.revision, got.Keys.Len(), want.Keys.Len())
			}
			for _, r := range got.Runs {
				if got.Definitions[r.Definition] == nil {
					t.Errorf("snapshot %d does not have the definition of run %s", s.revision, r.ID)
				}
			}
			if len(got.Runs) > 2*snapshotTurn {
				crowded++
			}
		}
		if crowded < 2 {
			t.Errorf("%d snapshots were too large for one turn of the loop", crowded)
		}
	})
}

// slow is a journal that takes its time, so that events come while a snapshot
// waits for its revision.
type slow struct{ *recordingStore }

func (s *slow) Append(ctx context.Context, after uint64, commit []byte) (uint64, error) {
	time.Sleep(10 * time.Millisecond)
	return s.recordingStore.Append(ctx, after, commit)
}

func definitionsOf(t *testing.T, s madeSnapshot) []string {
	t.Helper()
	shard, _, err := wire.DecodeSnapshot(s.stored)
	if err != nil {
		t.Fatal(err)
	}
	return slices.Sorted(maps.Keys(shard.Definitions))
}

func TestSnapshotsDropDefinitionsThatNoRunNeeds(t *testing.T) {
	t.Parallel()
	first := load(t, twoFlowsHCL)
	second := load(t, twoFlowsHCL+"\n# changed\n")
	old, changed := first.Flows[0].DefinitionDigest, second.Flows[0].DefinitionDigest
	synctest.Test(t, func(t *testing.T) {
		k := newKeeper()
		config := Config{Journal: k, Snapshots: k, Definitions: -1, Invoker: invokerFunc(quickAndSlow)}
		r := boot(t, config, first)
		open := r.submit("slow", `null`)
		turn := func(want ...string) {
			t.Helper()
			r.run("quick", `null`)
			before := len(k.snapshots())
			time.Sleep(2 * snapshotAge)
			made := k.snapshots()
			if len(made) == before {
				t.Fatal("no snapshot was made")
			}
			slices.Sort(want)
			if diff := cmp.Diff(want, definitionsOf(t, made[len(made)-1])); diff != "" {
				t.Errorf("the snapshot has other definitions (-want +got):\n%s", diff)
			}
		}
		turn(old)
		if err := r.Deploy(t.Context(), second); err != nil {
			t.Fatal(err)
		}
		turn(old)
		if err := r.Cancel(t.Context(), open, ""); err != nil {
			t.Fatal(err)
		}
		open = r.submit("slow", `null`)
		turn(changed)
		r.onLoop(func() {
			if r.exec.sets[old] != nil || r.exec.sets[changed] == nil {
				t.Errorf("the loaded sets are %v", slices.Collect(maps.Keys(r.exec.sets)))
			}
		})
		// What was dropped is recorded again when a run needs it.
		if err := r.Deploy(t.Context(), first); err != nil {
			t.Fatal(err)
		}
		again := r.submit("slow", `null`)
		turn(old, changed)
		r.crash()
		r = boot(t, Config{Journal: k, Snapshots: k})
		for _, id := range []run.ID{open, again} {
			if record := r.wait(id); record.State != run.Succeeded {
				t.Errorf("after a restart the run is %s: %v", record.State, record.Error)
			}
		}
		r.halt()
	})
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

// Of two snapshots the older one and the journal make up for a damaged newer one;
// without both there is no way, and the engine says so.
func TestRecoveryFromTheSnapshotsThatAreLeft(t *testing.T) {
	t.Parallel()
	set := load(t, twoFlowsHCL)
	damage := func(s Store, name string) error { return s.Put(context.Background(), name, []byte("damaged")) }
	for name, c := range map[string]struct {
		broken int // how many of the newest
		change func(Store, string) error
	}{
		"both are there":           {0, nil},
		"the newer one is damaged": {1, damage},
		"the newer one is gone":    {1, func(s Store, name string) error { return s.Delete(context.Background(), name) }},
		"both are damaged":         {2, damage},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				journal, store := memory.NewJournal(), memory.NewStore()
				config := Config{Journal: journal, Snapshots: store, Invoker: invokerFunc(quickAndSlow), Timeout: 24 * time.Hour}
				r := boot(t, config, set)
				open := []run.ID{r.submit("slow", `null`)}
				for range 5 {
					r.run("quick", `null`)
					open = append(open, r.submit("slow", `null`))
					time.Sleep(snapshotAge + time.Second)
				}
				open = append(open, r.first(keyed("slow", "k", `null`)))
				r.crash()
				stored := names(t, store)
				if len(stored) != 2 || journal.Removed() == 0 {
					t.Fatalf("there are %d snapshots, and the journal begins after %d", len(stored), journal.Removed())
				}
				for _, name := range stored[2-c.broken:] {
					if err := c.change(store, name); err != nil {
						t.Fatal(err)
					}
				}
				config.Invoker = guests{}
				if c.broken == 2 {
					config.Restore = restore
					var gap *ChainError
					if err := New(config).Run(t.Context()); !errors.As(err, &gap) || gap.Last != 0 || gap.After != journal.Removed() {
						t.Errorf("Run gives %v", err)
					}
					return
				}
				r = boot(t, config, set)
				r.repeated(keyed("slow", "k", `null`), open[len(open)-1])
				for _, id := range open {
					if record := r.wait(id); record.State != run.Succeeded || taskOf(t, record, "a").Attempts > 2 {
						t.Errorf("run %s is %s: %v", id, record.State, record.Error)
					}
				}
				for range 2 {
					r.run("quick", `null`)
					time.Sleep(2 * snapshotAge)
				}
				r.halt()
				if left := names(t, store); len(left) != 2 || left[0] <= stored[1] {
					t.Errorf("after two more snapshots there are %v, before %v", left, stored)
				}
			})
		})
	}
}
