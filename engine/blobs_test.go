package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/flowhost/flowhost/engine/memory"
	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/run/wire"
)

const blobsHCL = `
flow "f" {
  task "a" {
    plugin = "./m.wasm"
    input  = trigger.payload
  }
  task "b" {
    plugin = "./m.wasm"
    input  = { of = task.a.output }
  }
  output "all" {
    value = task.b.output
  }
}
flow "small" {
  task "s" { plugin = "./m.wasm" }
}`

// large gives JSON of run.BlobSize and more that begins with the letter.
func large(letter string) json.RawMessage {
	return json.RawMessage(`"` + letter + strings.Repeat("x", run.BlobSize) + `"`)
}

// refsOf gives the names of the blobs that a commit refers to.
func refsOf(stored []byte) ([]string, error) {
	commit, err := wire.DecodeCommit(stored)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range commit.Events {
		e.Payloads(func(p *json.RawMessage) {
			if name, apart := run.BlobName(*p); apart {
				names = append(names, name)
			}
		})
	}
	return names, nil
}

// careful is a journal that looks, when it takes a commit, whether everything
// that it refers to is in the store.
type careful struct {
	Journal
	t     *testing.T
	blobs Store

	mu       sync.Mutex
	named    map[string]int // how often
	appended int
}

func (c *careful) Append(ctx context.Context, after uint64, stored []byte) (uint64, error) {
	names, err := refsOf(stored)
	if err != nil {
		return 0, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range names {
		c.named[name]++
		data, err := c.blobs.Get(ctx, name)
		if err != nil || !run.IsBlob(name, data) {
			c.t.Errorf("a commit refers to %s, which is not stored: %v", name, err)
		}
	}
	if len(stored) > run.BlobSize {
		c.t.Errorf("a commit has %d bytes", len(stored))
	}
	c.appended++
	return c.Journal.Append(ctx, after, stored)
}

// counting is a store that counts what is put into it.
type counting struct {
	Store
	mu   sync.Mutex
	puts map[string]int
}

func newCounting() *counting { return &counting{Store: memory.NewStore(), puts: map[string]int{}} }

func (c *counting) Put(ctx context.Context, name string, data []byte) error {
	c.mu.Lock()
	c.puts[name]++
	c.mu.Unlock()
	return c.Store.Put(ctx, name, data)
}

// away is a store that can be made to fail.
type away struct {
	Store
	mu  sync.Mutex
	err error
}

func (a *away) fail(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.err = err
}

func (a *away) failure() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}

func (a *away) Put(ctx context.Context, name string, data []byte) error {
	if err := a.failure(); err != nil {
		return err
	}
	return a.Store.Put(ctx, name, data)
}

func (a *away) Get(ctx context.Context, name string) ([]byte, error) {
	if err := a.failure(); err != nil {
		return nil, err
	}
	return a.Store.Get(ctx, name)
}

func names(t *testing.T, s Store) []string {
	t.Helper()
	all, err := s.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// wantBlobs checks what is in a store, by its content.
func wantBlobs(t *testing.T, s Store, when string, want ...json.RawMessage) {
	t.Helper()
	var have, expected []string
	for _, name := range names(t, s) {
		data, err := s.Get(t.Context(), name)
		if err != nil || !run.IsBlob(name, data) {
			t.Errorf("%s is damaged: %v", name, err)
		}
		have = append(have, fmt.Sprintf("%.8s of %d", data, len(data)))
	}
	for _, data := range want {
		expected = append(expected, fmt.Sprintf("%.8s of %d", []byte(data), len(data)))
	}
	slices.Sort(have)
	slices.Sort(expected)
	if diff := cmp.Diff(expected, have); diff != "" {
		t.Errorf("%s the store holds other values (-want +got):\n%s", when, diff)
	}
}

func TestLargeValuesAreStoredBeforeTheirCommit(t *testing.T) {
	t.Parallel()
	set := load(t, blobsHCL)
	synctest.Test(t, func(t *testing.T) {
		store := newCounting()
		journal := &careful{Journal: memory.NewJournal(), t: t, blobs: store, named: map[string]int{}}
		told, calls := &notices{}, make(chan run.Call, 2)
		r := boot(t, Config{Journal: journal, Blobs: store, Observers: []Observation{{Observer: told}}, Invoker: invokerFunc(
			func(_ context.Context, c run.Call) (run.Result, error) {
				calls <- c
				return gives(c.Input), nil
			})}, set)
		payload := large("p")
		wrapped := json.RawMessage(`{"of":` + string(payload) + `}`)
		all := json.RawMessage(`{"all":` + string(wrapped) + `}`)
		record := r.run("f", string(payload))

		for _, want := range []json.RawMessage{payload, wrapped} {
			if call := <-calls; !bytes.Equal(call.Input, want) {
				t.Errorf("task %s is given %.40s", call.Task, call.Input)
			}
		}
		wantWhole(t, record, payload, wrapped, all)
		wantBlobs(t, store, "after the run", payload, wrapped, all)
		for name, n := range store.puts { // payload, input and output of a are the same bytes
			if n != 1 || journal.named[name] == 0 {
				t.Errorf("a value was stored %d times and is named %d times", n, journal.named[name])
			}
		}
		if again, err := r.Get(t.Context(), record.Run); err != nil || !bytes.Equal(again.Output, all) {
			t.Errorf("Get gives the output %.40s, %v", again.Output, err)
		}
		r.stop()
		for _, n := range told.all() {
			n.Event.Payloads(func(p *json.RawMessage) {
				if len(*p) > 0 && !json.Valid(*p) {
					t.Errorf("observers are told of %s with %.40q", n.Event.Data.Kind(), *p)
				}
			})
			if n.Record != nil {
				wantWhole(t, n.Record, payload, wrapped, all)
			}
		}
	})
}

func wantWhole(t *testing.T, record *run.Record, payload, wrapped, all json.RawMessage) {
	t.Helper()
	a, b := taskOf(t, record, "a"), taskOf(t, record, "b")
	for name, pair := range map[string][2]json.RawMessage{
		"payload":       {payload, record.Trigger.Payload},
		"input of a":    {payload, a.Input},
		"output of a":   {payload, a.Output},
		"input of b":    {wrapped, b.Input},
		"output of b":   {wrapped, b.Output},
		"run's outputs": {all, record.Output},
	} {
		if !bytes.Equal(pair[0], pair[1]) {
			t.Errorf("the %s has %d bytes, want %d: %.40q", name, len(pair[1]), len(pair[0]), pair[1])
		}
	}
}

func TestEqualValuesAreStoredOnce(t *testing.T) {
	t.Parallel()
	set := load(t, blobsHCL)
	synctest.Test(t, func(t *testing.T) {
		store := newCounting()
		r := boot(t, Config{Blobs: store, Invoker: invokerFunc(
			func(context.Context, run.Call) (run.Result, error) { return gives(json.RawMessage(`1`)), nil })}, set)
		for range 10 {
			r.run("f", string(large("p")))
		}
		r.run("f", string(large("q")))
		r.run("f", string(large("p")[:run.BlobSize-2])+`"`) // a byte less than is stored apart
		r.stop()
		wantBlobs(t, store, "after all", large("p"), large("q"))
		for name, n := range store.puts {
			if n != 1 {
				t.Errorf("%s was stored %d times", name, n)
			}
		}
	})
}

// The process may end after any event; what is large comes back with the rest.
func TestLargeValuesSurviveARestart(t *testing.T) {
	t.Parallel()
	set := load(t, blobsHCL)
	synctest.Test(t, func(t *testing.T) {
		store := memory.NewStore()
		r := boot(t, Config{Blobs: store}, set)
		id := r.submit("f", string(large("p")))
		want := r.wait(id)
		r.stop()
		told := &notices{}
		fromEveryEvent(t, r.journal, id, func(j Journal) *rig {
			told = &notices{}
			return boot(t, Config{Journal: j, Blobs: store, Observers: []Observation{{Observer: told, CatchUp: true}}}, set)
		}, func(n uint64, _ *rig, got *run.Record) {
			if !bytes.Equal(got.Output, want.Output) || !bytes.Equal(taskOf(t, got, "b").Input, taskOf(t, want, "b").Input) || !bytes.Equal(got.Trigger.Payload, large("p")) {
				t.Errorf("after event %d the run is %s and gives %.40q: %v", n, got.State, got.Output, got.Error)
			}
			for _, notice := range told.all() {
				notice.Event.Payloads(func(p *json.RawMessage) {
					if len(*p) > 0 && !json.Valid(*p) {
						t.Errorf("after event %d observers are told of %s with %.40q", n, notice.Event.Data.Kind(), *p)
					}
				})
			}
		})
	})
}

// Taken over from one run to the next, large outputs are not stored again.
func TestLargeOutputsAreTakenOver(t *testing.T) {
	t.Parallel()
	set := load(t, brokenHCL)
	synctest.Test(t, func(t *testing.T) {
		host, store := &mended{}, newCounting()
		r := boot(t, Config{Invoker: host, Blobs: store}, set)
		old := r.run("f", string(large("p")))
		host.mend()
		id := r.retried(old.Run, false)
		record := r.wait(id)
		if a, was := taskOf(t, record, "a"), taskOf(t, old, "a"); !bytes.Equal(a.Output, was.Output) || len(a.Output) < run.BlobSize || !a.Reused {
			t.Errorf("task a has %d bytes of output, %d before", len(a.Output), len(was.Output))
		}
		for name, n := range store.puts {
			if n != 1 {
				t.Errorf("%s was stored %d times", name, n)
			}
		}
		r.stop()
		fromEveryEvent(t, r.journal, id, func(j Journal) *rig {
			return boot(t, Config{Journal: j, Invoker: host, Blobs: store}, set)
		}, func(n uint64, _ *rig, got *run.Record) {
			if !bytes.Equal(got.Output, record.Output) {
				t.Errorf("after event %d the run is %s: %v", n, got.State, got.Error)
			}
		})
	})
}

// snapshotTurns lets the engine make n snapshots, by its age.
func (r *rig) snapshotTurns(n int) {
	r.t.Helper()
	for range n {
		r.run("small", `null`)
		time.Sleep(snapshotAge + time.Second)
	}
}

func TestLargeValuesGoWhenNothingRefersToThem(t *testing.T) {
	t.Parallel()
	set := load(t, blobsHCL)
	synctest.Test(t, func(t *testing.T) {
		store, snapshots, journal := memory.NewStore(), memory.NewStore(), memory.NewJournal()
		stays := guests{"a": func(ctx context.Context, c run.Call) (run.Result, error) {
			if bytes.HasPrefix(c.Input, []byte(`"stay`)) {
				return takes(24*time.Hour)(ctx, c)
			}
			return gives(json.RawMessage(`1`)), nil
		}}
		config := Config{Journal: journal, Blobs: store, Snapshots: snapshots, Invoker: stays, Timeout: 48 * time.Hour}
		r := boot(t, config, set)
		open := r.submit("f", string(large("stay")))
		r.run("f", string(large("go")))
		wantBlobs(t, store, "at first", large("stay"), large("go"))
		// Until two snapshots are without it, the journal may have to be read from
		// where it was.
		for i := 1; len(names(t, store)) == 2; i++ {
			if i > 5 {
				t.Fatal("what nothing refers to is never removed")
			}
			r.snapshotTurns(1)
			checkRecoverable(t, journal, snapshots, store)
		}
		wantBlobs(t, store, "after some snapshots", large("stay"))
		r.snapshotTurns(4)
		wantBlobs(t, store, "after more", large("stay"))
		r.run("f", string(large("go"))) // comes back
		r.snapshotTurns(1)
		wantBlobs(t, store, "when it came back", large("stay"), large("go"))
		r.crash()

		config.Invoker = guests{}
		r = boot(t, config, set)
		if record := r.wait(open); !bytes.Equal(taskOf(t, record, "a").Output, large("stay")) {
			t.Errorf("the run that was open is %s, and its task gives %.40q", record.State, taskOf(t, record, "a").Output)
		}
		r.snapshotTurns(5)
		wantBlobs(t, store, "at last")
		r.halt()
	})
}

// checkRecoverable reads each stored snapshot and the journal after it: all that
// they refer to must be there.
func checkRecoverable(t *testing.T, journal Journal, snapshots, blobs Store) {
	t.Helper()
	for _, name := range names(t, snapshots) {
		stored, err := snapshots.Get(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		shard, revision, err := wire.DecodeSnapshot(stored)
		if err != nil {
			t.Fatal(err)
		}
		check := func(p *json.RawMessage) {
			if blob, apart := run.BlobName(*p); apart {
				if _, err := blobs.Get(t.Context(), blob); err != nil {
					t.Errorf("%s and the journal after it refer to what is gone: %v", name, err)
				}
			}
		}
		for _, r := range shard.Runs {
			r.Payloads(check)
		}
		next := revision + 1
		err = journal.Replay(t.Context(), revision, func(of uint64, commit []byte) error {
			if of != next {
				t.Errorf("after %s the journal goes on with revision %d", name, of)
			}
			next++
			decoded, err := wire.DecodeCommit(commit)
			if err != nil {
				return err
			}
			for _, e := range decoded.Events {
				e.Payloads(check)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// Snapshots that could not be stored do not count: what follows the older one of
// those that could stays.
func TestLargeValuesStayWhenASnapshotFails(t *testing.T) {
	t.Parallel()
	set := load(t, blobsHCL)
	synctest.Test(t, func(t *testing.T) {
		store, journal := memory.NewStore(), memory.NewJournal()
		snapshots := &away{Store: memory.NewStore()}
		r := boot(t, Config{
			Journal: journal, Blobs: store, Snapshots: snapshots,
			Invoker: guests{"a": func(context.Context, run.Call) (run.Result, error) { return gives(json.RawMessage(`1`)), nil }},
		}, set)
		for round := range 12 {
			r.run("f", string(large(fmt.Sprint("of", round/2)))) // each value comes twice
			if snapshots.fail(nil); round%3 == 1 || round > 6 && round < 10 {
				snapshots.fail(errors.New("no space is left"))
			}
			time.Sleep(snapshotAge + time.Second)
			checkRecoverable(t, journal, snapshots.Store, store)
		}
		if n := len(names(t, snapshots.Store)); n != 2 {
			t.Errorf("%d snapshots are stored", n)
		}
		if n := len(names(t, store)); n > 8 {
			t.Errorf("%d values are kept", n)
		}
		r.halt()
	})
}

// While the store is away, nothing that refers to large values is durable.
func TestStoreOfLargeValuesFailsForAWhile(t *testing.T) {
	t.Parallel()
	set := load(t, blobsHCL)
	synctest.Test(t, func(t *testing.T) {
		store := &away{Store: memory.NewStore()}
		journal := &careful{Journal: memory.NewJournal(), t: t, blobs: store.Store, named: map[string]int{}}
		r := boot(t, Config{Journal: journal, Blobs: store}, set)
		<-r.Ready()
		store.fail(errors.New("no space is left"))
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		request := run.Request{Flow: "f", Key: "k", Trigger: run.Trigger{Payload: large("p")}}
		if receipt, err := r.Submit(ctx, request); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a request that cannot be stored is answered with %+v, %v", receipt, err)
		}
		if journal.mu.Lock(); journal.appended > 1 { // the flow's definition may go ahead
			t.Errorf("%d commits were made", journal.appended)
		}
		journal.mu.Unlock()
		store.fail(nil)
		receipt, err := r.Submit(t.Context(), request)
		if err != nil || !receipt.Repeated {
			t.Fatalf("once the store is back: %+v, %v", receipt, err)
		}
		if record := r.wait(receipt.Run); record.State != run.Succeeded {
			t.Errorf("the run is %s: %v", record.State, record.Error)
		}
		r.stop()
	})
}

// A store that is not there yet when the engine starts costs time, not runs.
func TestStoreOfLargeValuesIsAwayAtTheStart(t *testing.T) {
	t.Parallel()
	set := load(t, blobsHCL)
	synctest.Test(t, func(t *testing.T) {
		store := &away{Store: memory.NewStore()}
		config := Config{Journal: memory.NewJournal(), Blobs: store, Invoker: guests{"a": takes(time.Hour)}}
		r := boot(t, config, set)
		id := r.submit("f", string(large("p")))
		time.Sleep(time.Second)
		r.crash()
		store.fail(errors.New("no connection"))
		config.Invoker = guests{}
		time.AfterFunc(time.Minute, func() { store.fail(nil) })
		r = boot(t, config, set)
		record := r.wait(id)
		if record.State != run.Succeeded {
			t.Errorf("the run is %s: %v", record.State, record.Error)
		}
		r.stop()
	})
}

// A run whose large value is lost for good cannot be continued, and says why. The
// others continue.
func TestRunWhoseLargeValueIsLost(t *testing.T) {
	t.Parallel()
	set := load(t, blobsHCL)
	for name, damage := range map[string]func(Store, string) error{
		"gone":    func(s Store, name string) error { return s.Delete(context.Background(), name) },
		"damaged": func(s Store, name string) error { return s.Put(context.Background(), name, []byte(`"other"`)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store, told := memory.NewStore(), &notices{}
				config := Config{Journal: memory.NewJournal(), Blobs: store, Invoker: guests{"a": takes(time.Hour)}}
				r := boot(t, config, set)
				lost, kept := r.submit("f", string(large("lost"))), r.submit("f", string(large("kept")))
				time.Sleep(time.Second)
				r.crash()
				for _, name := range names(t, store) {
					if data, _ := store.Get(t.Context(), name); bytes.Equal(data, large("lost")) {
						if err := damage(store, name); err != nil {
							t.Fatal(err)
						}
					}
				}
				config.Invoker, config.Observers = guests{}, []Observation{{Observer: told}}
				r = boot(t, config, set)
				if record := r.wait(kept); record.State != run.Succeeded {
					t.Errorf("another run is %s: %v", record.State, record.Error)
				}
				r.halt()
				record := finishedOf(t, told, lost)
				if record.State != run.Failed || record.Error.Code != run.CodeDefinition || !strings.Contains(record.Error.Message, "large value") {
					t.Errorf("the run is %s: %+v", record.State, record.Error)
				}
			})
		})
	}
}

// finishedOf gives the record of a run's end as observers received it. It must
// be fit to leave the process.
func finishedOf(t *testing.T, told *notices, id run.ID) *run.Record {
	t.Helper()
	for _, n := range told.all() {
		if n.Record != nil && n.Event.Run == id {
			if _, err := run.EncodeJSON(n.Record); err != nil {
				t.Errorf("the record of run %s cannot be given out: %v", id, err)
			}
			return n.Record
		}
	}
	t.Fatalf("observers were not told of the end of run %s", id)
	return nil
}

// A run that ends because its flow cannot be loaded any more has the values that
// it had.
func TestRunOfALostDefinitionKeepsItsLargeValues(t *testing.T) {
	t.Parallel()
	set := load(t, blobsHCL)
	synctest.Test(t, func(t *testing.T) {
		store, told, journal := memory.NewStore(), &notices{}, memory.NewJournal()
		r := boot(t, Config{Journal: journal, Blobs: store, Invoker: guests{"a": takes(time.Hour)}}, set)
		id := r.submit("f", string(large("p")))
		time.Sleep(time.Second)
		r.crash()
		engine := New(Config{
			Journal: journal, Blobs: store, Invoker: guests{}, Observers: []Observation{{Observer: told}},
			Restore: func(context.Context, *run.Definition) (*flows.Set, error) {
				return nil, errors.New("module sha256:m is gone")
			},
		})
		engine.Drain()
		if err := engine.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if record := finishedOf(t, told, id); !bytes.Equal(record.Trigger.Payload, large("p")) {
			t.Errorf("the payload is %.40q", record.Trigger.Payload)
		}
	})
}
