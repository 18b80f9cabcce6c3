package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flowhost/flowhost/engine/memory"
	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/run/wire"
)

// remains is what is left when a process ends.
type remains struct {
	t       *testing.T
	diary   diary
	journal *ledger
	shelf   *checkedSnapshots
	vault   *checkedBlobs
}

func newRemains(t *testing.T) *remains {
	m := &remains{t: t}
	m.vault = &checkedBlobs{t: t, diary: &m.diary, need: func(name string) error {
		return errors.Join(m.shelf.needs(name), m.journal.needs(name, m.shelf.oldest()))
	}}
	m.journal = newLedger(t, &m.diary, m.vault)
	m.shelf = &checkedSnapshots{t: t, diary: &m.diary, ledger: m.journal}
	return m
}

// config is of an engine on what is left. It makes a snapshot every time it may.
func (m *remains) config() Config {
	return Config{Journal: m.journal, Snapshots: m.shelf, Blobs: m.vault, SnapshotEvents: 1, Workers: 2}
}

// mortal is config for a process that ends at the n-th deed.
func (m *remains) mortal(n int, done bool) (Config, *fuse) {
	c, f := m.config(), newFuse(n, done, nil)
	c.Journal, c.Snapshots, c.Blobs = mortalJournal{m.journal, f}, mortalStore{m.shelf, f}, mortalStore{m.vault, f}
	return c, f
}

const largeSize = run.BlobSize + 1

// largeHCL has large values in every place: payload, input and output.
const largeHCL = `
flow "f" {
  task "first" {
    plugin = "./m.wasm"
    input  = trigger.payload
  }
  task "second" {
    plugin = "./m.wasm"
    input  = task.first.output
  }
  task "third" {
    plugin = "./m.wasm"
    input  = task.second.output
  }
}`

// slowly lets each guest take its time.
func slowly(d time.Duration) guests {
	return guests{"first": takes(d), "second": takes(d), "third": takes(d)}
}

func text(c string, size int) string { return `"` + strings.Repeat(c, size) + `"` }

// The process may end at any deed, before or after it is done: an append, storing
// a value or a snapshot, shortening the journal, removing what is not needed any
// more. Each attempt is longer than the least time between two snapshots.
func TestProcessEndsAtEveryDeed(t *testing.T) {
	t.Parallel()
	set := load(t, largeHCL)
	payloads := []string{text("a", largeSize), text("b", 10), text("c", largeSize)}
	for deeds := 1; ; deeds++ {
		ended := 0
		for _, done := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				m := newRemains(t)
				config, fuse := m.mortal(deeds, done)
				config.Invoker = slowly(time.Minute + time.Second)
				config.Observers = []Observation{{Observer: mortalObserver{&notices{}, fuse}}}
				ids := map[run.ID]string{}
				e, ctx := New(config), t.Context()
				e.exec.config.Restore = restore
				ctx, fuse.kill = context.WithCancel(ctx)
				over := make(chan error, 1)
				go func() { over <- e.Run(ctx) }()
				e.Deploy(ctx, set)
				for _, payload := range payloads {
					receipt, err := e.Submit(ctx, run.Request{Flow: "f", Trigger: run.Trigger{Payload: json.RawMessage(payload)}})
					if err == nil {
						ids[receipt.Run] = payload
					}
				}
				time.Sleep(20 * time.Minute)
				if ctx.Err() != nil {
					ended++
				}
				fuse.kill()
				<-over

				told := finished{}
				config = m.config()
				config.Observers = []Observation{{Observer: told, CatchUp: true}}
				r := boot(t, config, set)
				time.Sleep(20 * time.Minute)
				r.Drain()
				if err := <-r.ended; err != nil {
					t.Errorf("deed %d (done: %t): %v", deeds, done, err)
				}
				r.kill()
				for id, payload := range ids {
					if m.journal.state(id) != run.Succeeded || told[id] != nil && string(told[id].Output) != `{"third":`+payload+`}` {
						t.Errorf("deed %d (done: %t): run %s is %s\n%s", deeds, done, id, m.journal.state(id), &m.diary)
					}
				}
				if m.journal.open() > 0 {
					t.Errorf("deed %d (done: %t): %d runs are open\n%s", deeds, done, m.journal.open(), &m.diary)
				}
			})
		}
		if t.Failed() || ended == 0 {
			if deeds < 40 {
				t.Errorf("there are %d deeds only", deeds)
			}
			return
		}
	}
}

// state gives the state of a run, finished or not.
func (l *ledger) state(id run.ID) run.State {
	l.mu.Lock()
	defer l.mu.Unlock()
	state := run.State("unknown")
	for _, events := range l.events {
		for _, e := range events {
			switch d := e.Data.(type) {
			case *run.Submitted:
				if e.Run == id {
					state = run.Pending
				}
			case *run.Finished:
				if e.Run == id {
					state = d.State
				}
			}
		}
	}
	return state
}

// finished keeps the records of the runs that it receives.
type finished map[run.ID]*run.Record

func (f finished) Committed(_ context.Context, n run.Notice) error {
	if n.Record != nil {
		f[n.Record.Run] = n.Record
	}
	return nil
}

func (f finished) Flush(context.Context) error { return nil }

const endsHCL = `
flow "f" {
  timeout = "1h"
  concurrency {
    limit = 2
  }
  task "a" {
    plugin = "./m.wasm"
    input  = trigger.payload
  }
  task "b" {
    plugin = "./m.wasm"
    input  = trigger.payload
    after  = [task.a]
    retry {
      attempts = 3
      delay    = "10s"
      jitter   = 0
    }
  }
  task "c" {
    plugin = "./m.wasm"
    input  = trigger.payload
    after  = [task.a]
  }
  on_failure {
    task "h" {
      plugin  = "./m.wasm"
      input   = trigger.payload
      retries = 2
    }
    task "i" {
      plugin = "./m.wasm"
      input  = trigger.payload
      after  = [task.h]
    }
  }
}`

// A commit may end after any event, when it is full. So a crash may leave any
// beginning of the events behind; only a request's are never torn apart.
func TestRunsContinueFromEveryEvent(t *testing.T) {
	t.Parallel()
	set := load(t, endsHCL)
	for name, story := range map[string]func(*rig){
		"cancel while a retry is due": func(r *rig) {
			id := r.submit("f", `{"b":"fails"}`)
			time.Sleep(5 * time.Second)
			r.Cancel(r.t.Context(), id, "enough")
			r.wait(id)
		},
		"cancel of a task while its retry is due": func(r *rig) {
			id := r.submit("f", `{"b":"fails"}`)
			time.Sleep(5 * time.Second)
			r.CancelTask(r.t.Context(), id, run.TaskRef{Task: "b"}, "enough")
			r.wait(id)
		},
		"cancel during the hook": func(r *rig) {
			id := r.submit("f", `{"c":"fails","h":"slow"}`)
			time.Sleep(time.Minute)
			r.Cancel(r.t.Context(), id, "enough")
			r.wait(id)
		},
		"cancel while a retry of the hook is due": func(r *rig) {
			id := r.submit("f", `{"c":"fails","h":"fails"}`)
			time.Sleep(500 * time.Millisecond)
			r.Cancel(r.t.Context(), id, "enough")
			r.wait(id)
		},
		"cancel of the hook's tasks before it is known whether it runs": func(r *rig) {
			for _, payload := range []string{`{"a":"slow"}`, `{"a":"slow","c":"fails"}`} {
				id := r.submit("f", payload)
				r.CancelTask(r.t.Context(), id, run.TaskRef{Task: "h"}, "not this one")
				r.wait(id)
			}
		},
		"cancel while it waits for its slot": func(r *rig) {
			first, second, third := r.submit("f", `{"a":"slow"}`), r.submit("f", `{"a":"slow"}`), r.submit("f", `{}`)
			r.CancelTask(r.t.Context(), third, run.TaskRef{Task: "b"}, "not this one")
			r.CancelTask(r.t.Context(), third, run.TaskRef{Task: "h"}, "not this one")
			r.Cancel(r.t.Context(), third, "enough")
			for _, id := range []run.ID{first, second, third} {
				r.wait(id)
			}
		},
		"the time is up": func(r *rig) {
			r.wait(r.submit("f", `{"a":"forever","h":"fails"}`))
		},
		"a retry, and one that is canceled while it waits": func(r *rig) {
			id := r.submit("f", `{"c":"fails"}`)
			r.wait(id)
			first, second := r.submit("f", `{"a":"slow"}`), r.submit("f", `{"a":"slow"}`)
			for range 2 {
				receipt, err := r.Retry(r.t.Context(), id, run.RerunOptions{})
				if err != nil {
					r.t.Fatal(err)
				}
				defer r.wait(receipt.Run)
				if id = receipt.Run; first != "" {
					r.Cancel(r.t.Context(), id, "enough")
				}
			}
			r.wait(first)
			r.wait(second)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				journal := memory.NewJournal()
				r := boot(t, Config{Journal: journal, Invoker: obedient{}, Workers: 3, Timeout: 2 * time.Hour}, set)
				story(r)
				r.stop()
				events := journalEvents(t, journal)
				for n := range len(events) {
					journal := journalOf(t, events[:n]...)
					r := boot(t, Config{Journal: journal, Invoker: obedient{}, Workers: 3, Timeout: 2 * time.Hour})
					if err := r.Deploy(t.Context(), set); err != nil {
						t.Fatalf("after event %d, %s: %v", n, events[n-1].Data.Kind(), <-r.ended)
					}
					time.Sleep(5 * time.Hour)
					select {
					case err := <-r.ended:
						t.Fatalf("after event %d, %s: %v", n, events[n-1].Data.Kind(), err)
					default:
					}
					for id, got := range fold(t, journal).Runs {
						if !got.State.Done() {
							t.Errorf("after event %d, %s: run %s is %s", n, events[n-1].Data.Kind(), id, got.State)
						}
						startsNothingOnceStopped(t, journalEvents(t, journal), got)
					}
					if err := r.command(t.Context(), func() {
						if left := r.leftover(); left != "" {
							t.Errorf("after event %d, %s: %s", n, events[n-1].Data.Kind(), left)
						}
					}); err != nil {
						t.Error(err)
					}
					r.stop()
				}
			})
		})
	}
}

// obedient guests do what their input says of their task.
type obedient struct{}

func (obedient) Invoke(ctx context.Context, call run.Call) (run.Result, error) {
	var orders map[string]string
	if err := json.Unmarshal(call.Input, &orders); err != nil {
		return run.Result{}, err
	}
	switch orders[call.Task] {
	case "fails":
		return fails(run.OutcomeFailed, true), nil
	case "slow":
		return takes(10*time.Minute)(ctx, call)
	case "forever":
		return takes(3*time.Hour)(ctx, call)
	}
	return gives(json.RawMessage("1")), nil
}

// startsNothingOnceStopped checks that no attempt follows a cancel.
func startsNothingOnceStopped(t *testing.T, events []run.Event, r *run.Run) {
	t.Helper()
	stopped, tasks := false, map[string]bool{}
	for _, e := range events {
		if e.Run != r.ID {
			continue
		}
		switch d := e.Data.(type) {
		case *run.CancelRequested:
			stopped = d.Failure.Outcome == run.OutcomeCanceled
		case *run.TaskCancelRequested:
			tasks[d.Task] = true
		case *run.AttemptStarted:
			if stopped || tasks[d.Task] {
				t.Errorf("attempt %d of task %s starts after it was canceled", d.Attempt, d.Task)
			}
		}
	}
}

// journalEvents gives what a journal holds.
func journalEvents(t testing.TB, j Journal) []run.Event {
	t.Helper()
	var events []run.Event
	err := j.Replay(t.Context(), 0, func(_ uint64, stored []byte) error {
		commit, err := wire.DecodeCommit(stored)
		if err == nil {
			events = append(events, commit.Events...)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return events
}

// journalOf makes a journal with each event in a separate commit.
func journalOf(t testing.TB, events ...run.Event) *memory.Journal {
	t.Helper()
	j := memory.NewJournal()
	for i, e := range events {
		var c wire.Commit
		if err := c.Add(e); err != nil {
			t.Fatal(err)
		}
		if _, err := j.Append(t.Context(), uint64(i), c.Seal(uint64(i))); err != nil {
			t.Fatal(err)
		}
	}
	return j
}

// An observer that is behind the snapshots, or in the middle of the commit of one,
// receives everything it has not seen.
func TestObserversBehindTheSnapshotsMissNothing(t *testing.T) {
	t.Parallel()
	set := load(t, largeHCL)
	for _, rounds := range []int{1, 6} {
		synctest.Test(t, func(t *testing.T) {
			m := history(t, set, rounds)
			first := m.journal.Removed()
			var places []Place // from which on everything can be published
			for revision := first; revision <= m.journal.last(); revision++ {
				for i := range m.journal.at(revision) {
					places = append(places, Place{revision, i})
				}
			}
			if first > 0 {
				places = places[len(m.journal.at(first))-1:]
			} else {
				places = append([]Place{{}}, places...)
			}
			for i, seen := range places {
				told, prompt := &notices{}, &notices{}
				config := m.config()
				config.Journal, config.Snapshots = readOnly{m.journal}, m.shelf
				config.Observers = []Observation{
					{Observer: told, CatchUp: true, Seen: seen},
					{Observer: prompt, CatchUp: true, Seen: places[len(places)-1]},
				}
				r := boot(t, config)
				<-r.Ready()
				r.crash()
				var got []Place
				for _, n := range told.all() {
					got = append(got, Place{n.Revision, n.Index})
				}
				if want := places[i+1:]; !slices.Equal(got, want) {
					t.Errorf("snapshots %v: after %v the observer is told of %v, want %v", m.snapshots(), seen, got, want)
				}
				if n := len(prompt.all()); n > 0 {
					t.Errorf("the one that has seen everything is told of %d events", n)
				}
			}
		})
	}
}

// readOnly is a journal that takes nothing until the process ends.
type readOnly struct{ Journal }

func (readOnly) Append(ctx context.Context, _ uint64, _ []byte) (uint64, error) {
	<-ctx.Done()
	return 0, ctx.Err()
}

// Definitions are dropped at snapshots. Whichever of the stored states a process
// begins with, the next one finds the definition of each open run.
func TestDefinitionsAreKnownFromEverySnapshot(t *testing.T) {
	t.Parallel()
	set := load(t, largeHCL)
	synctest.Test(t, func(t *testing.T) {
		m := newRemains(t)
		config := m.config()
		config.Invoker = guests{"first": takes(time.Minute)}
		r := boot(t, config, set)
		id := r.submit("f", `"first"`)
		r.decide(3) // a snapshot with the definition
		r.wait(id)
		r.decide(1) // and one without: no run is open
		r.crash()
		revisions := m.snapshots()
		if len(revisions) != 2 {
			t.Fatalf("there are snapshots %v", revisions)
		}
		behind := Place{revisions[1], len(m.journal.at(revisions[1])) - 1}
		config.Observers = []Observation{{Observer: &notices{}, CatchUp: true, Seen: behind}}
		r = boot(t, config, set) // begins with the older one
		id = r.submit("f", `"second"`)
		r.crash()
		config.Observers[0].Seen = Place{m.journal.last(), 1000}
		r = boot(t, config, set) // begins with the newest one
		time.Sleep(time.Hour)
		if state := m.journal.state(id); state != run.Succeeded {
			t.Errorf("the run is %s", state)
		}
		r.crash()
	})
}

// The time of a run ends with its main tasks: what comes too late for it does not
// stop the hook.
func TestTimeThatIsUpDuringTheHook(t *testing.T) {
	t.Parallel()
	set := load(t, `
flow "f" {
  timeout = "5s"
  task "a" { plugin = "./m.wasm" }
  on_failure {
    task "h" { plugin = "./m.wasm" }
  }
}`)
	for range 20 { // which of them the loop takes first is chance
		synctest.Test(t, func(t *testing.T) {
			r := boot(t, Config{Invoker: guests{
				"a": func(context.Context, run.Call) (run.Result, error) {
					time.Sleep(5 * time.Second)
					return fails(run.OutcomeFailed, false), nil
				},
				"h": takes(time.Minute),
			}}, set)
			id := r.submit("f", `null`)
			time.Sleep(4 * time.Second)
			r.command(t.Context(), func() { time.Sleep(2 * time.Second) }) // the loop is busy while both come
			if record := r.wait(id); taskOf(t, record, "h").State != run.Succeeded {
				t.Errorf("the hook is %v", states(record))
			}
			r.stop()
		})
	}
}

// A run that waits for its slot gets none because the process starts again.
func TestSlotsAreHeldOverARestart(t *testing.T) {
	t.Parallel()
	set := load(t, diamondHCL)
	for range 20 { // the order of ids of one millisecond is random
		synctest.Test(t, func(t *testing.T) {
			journal := memory.NewJournal()
			slow := guests{"split": takes(time.Minute)}
			r := boot(t, Config{Journal: journal, Invoker: slow}, set)
			first := r.submit("f", `{"a":1,"b":2}`)
			for range 3 {
				r.submit("f", `{"a":1,"b":2}`)
			}
			r.crash()
			r = boot(t, Config{Journal: journal, Invoker: slow}, set)
			time.Sleep(time.Second)
			r.command(t.Context(), func() {
				for id, o := range r.exec.open {
					if o.run.State != run.Pending && id != first {
						t.Errorf("run %s is %s while another one holds the only slot", id, o.run.State)
					}
				}
			})
			r.crash()
		})
	}
}

// decide records events that belong to no run, far enough apart for a snapshot at
// each.
func (r *rig) decide(n uint64) {
	r.t.Helper()
	source := fmt.Sprint(time.Now().UnixNano())
	for seq := range n {
		time.Sleep(snapshotPause + time.Second)
		if err := r.Decide(r.t.Context(), run.Position{Source: source, Seq: seq + 1}); err != nil {
			r.t.Fatal(err)
		}
	}
	synctest.Wait()
}
