package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
)

// ring is where engines fight for one journal: each revision has one writer.
type ring struct {
	*ledger
	mu      sync.Mutex
	writers map[uint64]int
}

// corner is the ring as one engine sees it.
type corner struct {
	*ring
	number int
}

func (c corner) Append(ctx context.Context, after uint64, commit []byte) (uint64, error) {
	revision, err := c.ring.Append(ctx, after, commit)
	if err != nil {
		return 0, err
	}
	c.ring.mu.Lock()
	defer c.ring.mu.Unlock()
	if other, taken := c.writers[revision]; taken {
		c.t.Errorf("engines %d and %d have both committed revision %d", other, c.number, revision)
	}
	c.writers[revision] = c.number
	return revision, nil
}

const fightHCL = `
flow "f" {
  task "a" {
    plugin = "./m.wasm"
    input  = trigger.payload
  }
  task "b" {
    plugin = "./m.wasm"
    input  = task.a.output
  }
}`

// Two engines on one journal at once, both under load. The one that comes too late
// steps down and begins again, and the other one is then the one that comes too
// late. What either of them accepted is finished, and recorded once.
func TestEnginesFightForAJournal(t *testing.T) {
	t.Parallel()
	const bouts, clients = 30, 4
	set := load(t, fightHCL)
	m := newRemains(t)
	f := &fight{ring: &ring{ledger: m.journal, writers: map[uint64]int{}}, t: t, set: set, blobs: m.vault, accepted: map[run.ID]string{}}
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	var engines, asking sync.WaitGroup
	fighting, enough := context.WithCancel(ctx)
	for i := range 2 {
		engines.Go(func() { f.stepUp(fighting, i) })
	}
	for i := range clients {
		asking.Go(func() {
			for n := 0; f.bouts() < bouts && !t.Failed(); n++ {
				f.ask(ctx, fmt.Sprintf("%d-%d", i, n/2)) // each twice
			}
		})
	}
	asking.Wait()
	enough()
	engines.Wait()

	r := boot(t, Config{Journal: m.journal, Blobs: m.vault}, set)
	for id := range f.accepted {
		if m.journal.state(id) == "unknown" {
			t.Errorf("run %s was accepted and is not recorded", id)
		}
	}
	for m.journal.open() > 0 && ctx.Err() == nil {
		for _, id := range m.journal.openRuns() {
			if _, err := r.Wait(ctx, id); err != nil && !errors.Is(err, run.ErrUnknown) {
				t.Fatal(err)
			}
		}
	}
	r.Drain()
	if err := <-r.ended; err != nil {
		t.Error(err)
	}
	r.kill()
	f.count()
}

type fight struct {
	*ring
	t     *testing.T
	set   *flows.Set
	blobs Store

	mu       sync.Mutex
	engines  [2]*Engine
	accepted map[run.ID]string // the key of each accepted run
	fenced   int
}

func (f *fight) bouts() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.fenced
}

// stepUp begins again whenever the engine had to step down.
func (f *fight) stepUp(ctx context.Context, number int) {
	for ctx.Err() == nil {
		e := New(Config{Journal: corner{f.ring, number}, Blobs: f.blobs, Invoker: guests{}, Restore: restore, Workers: 2})
		ended := make(chan error, 1)
		go func() { ended <- e.Run(ctx) }()
		if e.Deploy(ctx, f.set) == nil {
			f.mu.Lock()
			f.engines[number] = e
			f.mu.Unlock()
		}
		err := <-ended
		f.mu.Lock()
		switch {
		case errors.Is(err, run.ErrFenced):
			f.fenced++
		case ctx.Err() == nil:
			f.t.Errorf("an engine ends with %v", err)
		}
		f.mu.Unlock()
	}
}

// ask asks one engine after the other for the run of a key until it has a receipt.
func (f *fight) ask(ctx context.Context, key string) {
	for i := rand.IntN(2); ctx.Err() == nil; i++ {
		runtime.Gosched()
		f.mu.Lock()
		e := f.engines[i%2]
		f.mu.Unlock()
		if e == nil {
			continue
		}
		body, _ := json.Marshal(key)
		receipt, err := e.Submit(ctx, run.Request{Flow: "f", Key: key, Trigger: run.Trigger{Payload: body}})
		if err == nil {
			f.mu.Lock()
			f.accepted[receipt.Run] = key
			f.mu.Unlock()
			return
		}
		if !errors.Is(err, ErrStopped) {
			f.t.Errorf("a request is answered with %v", err)
			return
		}
	}
	f.t.Error("a request had no answer")
}

// count checks that each key has made one run, and that each run has one end.
func (f *fight) count() {
	made, ends := map[string]int{}, map[run.ID]int{}
	for revision := range f.last() {
		for _, e := range f.at(revision + 1) {
			switch d := e.Data.(type) {
			case *run.Submitted:
				made[d.Key]++
			case *run.Finished:
				ends[e.Run]++
			}
		}
	}
	for key, n := range made {
		if n != 1 {
			f.t.Errorf("key %s has made %d runs", key, n)
		}
	}
	for id, key := range f.accepted {
		if ends[id] != 1 {
			f.t.Errorf("run %s of key %s has %d ends", id, key, ends[id])
		}
	}
}

// held is a store that does not finish what it is given until it is let go.
type held struct {
	Store
	holding chan struct{} // closed when there is something
	letGo   chan struct{}
}

func (h held) Put(ctx context.Context, name string, data []byte) error {
	close(h.holding)
	<-h.letGo
	return h.Store.Put(ctx, name, data)
}

// An engine that has lost its journal and does not know it yet may be in the middle
// of clearing up. It must not take away what the other one has stored.
func TestEngineThatHasLostItsJournalRemovesNothing(t *testing.T) {
	t.Parallel()
	set := load(t, largeHCL)
	synctest.Test(t, func(t *testing.T) {
		m := newRemains(t)
		first := boot(t, m.config(), set)
		first.decide(1)
		first.crash()

		h := held{Store: m.shelf, holding: make(chan struct{}), letGo: make(chan struct{})}
		config := m.config()
		config.Snapshots = h
		slow := boot(t, config, set)
		slow.decide(1)
		<-h.holding

		config = m.config()
		config.Invoker = slowly(time.Minute)
		other := boot(t, config, set)
		id := other.submit("f", text("x", largeSize))
		close(h.letGo)
		synctest.Wait()
		if blobs, _ := m.vault.List(t.Context()); len(blobs) != 1 {
			t.Errorf("%d values are stored, want 1", len(blobs))
		}
		if _, err := slow.Submit(t.Context(), run.Request{Flow: "f", Trigger: run.Trigger{Payload: json.RawMessage(`1`)}}); !errors.Is(err, ErrStopped) {
			t.Errorf("the one that has lost answers %v", err)
		}
		if err := <-slow.ended; !errors.Is(err, run.ErrFenced) {
			t.Errorf("the one that has lost ends with %v", err)
		}
		slow.kill()
		other.crash()

		told := m.goOn(m.config(), set)
		if record := told[id]; record == nil || record.State != run.Succeeded || !bytes.Contains(record.Output, []byte("xxx")) {
			t.Errorf("the run of the other one: %+v", record)
		}
	})
}
