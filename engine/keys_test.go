package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flowhost/flowhost/engine/memory"
	"github.com/flowhost/flowhost/run"
)

const keysHCL = `
flow "f" {
  param "n" {
    type    = number
    default = 1
  }
  trigger "message" "m" {
    subject = "x"
    filter  = trigger.payload.n > 0
  }
  task "a" { plugin = "./m.wasm" }
}
flow "g" {
  task "a" { plugin = "./m.wasm" }
}`

func keyed(flow, key, payload string) run.Request {
	return run.Request{Flow: flow, Key: key, Trigger: run.Trigger{Kind: run.TriggerManual, Payload: json.RawMessage(payload)}}
}

// first wants the request to make a separate run, and gives it.
func (r *rig) first(request run.Request) run.ID {
	r.t.Helper()
	receipt, err := r.Submit(context.Background(), request)
	if err != nil || !receipt.Accepted || receipt.Repeated || receipt.Run == "" {
		r.t.Fatalf("key %q: %+v, %v", request.Key, receipt, err)
	}
	return receipt.Run
}

// repeated wants the request to be answered with a run that it made before.
func (r *rig) repeated(request run.Request, want run.ID) {
	r.t.Helper()
	receipt, err := r.Submit(context.Background(), request)
	if receipt != (run.Receipt{Run: want, Accepted: true, Repeated: true}) || err != nil {
		r.t.Errorf("key %q again: %+v, %v, want run %s", request.Key, receipt, err, want)
	}
}

func TestKeyMakesOneRunPerFlow(t *testing.T) {
	t.Parallel()
	set := load(t, keysHCL)
	synctest.Test(t, func(t *testing.T) {
		r := boot(t, Config{Invoker: guests{"a": takes(time.Minute)}}, set)
		id := r.first(keyed("f", "k", `{"n":1}`))
		r.repeated(keyed("f", "k", `{"n":1}`), id)
		r.repeated(keyed("f", "k", `{"n":2}`), id) // the key counts, not what comes with it
		r.wait(id)
		r.repeated(keyed("f", "k", `{"n":1}`), id) // nor that the run is over
		others := []run.ID{id, r.first(keyed("f", "K", `{}`)), r.first(keyed("g", "k", `{}`)), r.first(keyed("f", "", `{}`)), r.first(keyed("f", "", `{}`))}
		for _, other := range others {
			r.wait(other)
		}
		r.stop()
		if n := len(fold(t, r.journal).Runs); n != len(others) {
			t.Errorf("%d runs were made, want %d", n, len(others))
		}
	})
}

// Many who send the same request at the same time make one run, and are told of
// it when it is durable.
func TestKeyOfRequestsAtTheSameTime(t *testing.T) {
	t.Parallel()
	set := load(t, keysHCL)
	synctest.Test(t, func(t *testing.T) {
		journal := newGated()
		r := boot(t, Config{Journal: journal}, set)
		journal.shut()
		var mu sync.Mutex
		fresh, seen := 0, map[run.ID]int{}
		var asking sync.WaitGroup
		for range 20 {
			asking.Go(func() {
				receipt, err := r.Submit(t.Context(), keyed("f", "k", `{}`))
				mu.Lock()
				defer mu.Unlock()
				if err != nil || !receipt.Accepted {
					t.Errorf("%+v, %v", receipt, err)
				}
				if seen[receipt.Run]++; !receipt.Repeated {
					fresh++
				}
			})
		}
		time.Sleep(time.Minute)
		mu.Lock()
		if len(seen) != 0 {
			t.Error("a receipt was given before the run was durable")
		}
		mu.Unlock()
		journal.open()
		asking.Wait()
		if fresh != 1 || len(seen) != 1 {
			t.Errorf("%d receipts are of a first request, and there are runs %v", fresh, seen)
		}
		r.stop()
	})
}

func TestKeysSurviveARestart(t *testing.T) {
	t.Parallel()
	set := load(t, keysHCL)
	for name, store := range map[string]Store{"from the journal": nil, "from a snapshot": memory.NewStore()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				config := Config{Journal: memory.NewJournal(), Snapshots: store}
				r := boot(t, config, set)
				old := r.first(keyed("f", "old", `{}`))
				time.Sleep(3 * snapshotAge)
				late := r.first(keyed("f", "late", `{}`))
				r.crash()
				if store != nil {
					if names, _ := store.List(t.Context()); len(names) == 0 {
						t.Fatal("there is no snapshot")
					}
				}
				r = boot(t, config, set)
				r.repeated(keyed("f", "old", `{}`), old)
				r.repeated(keyed("f", "late", `{}`), late)
				r.first(keyed("f", "other", `{}`))
				r.halt()
			})
		})
	}
}

// halt stops the engine softly. Unlike stop it can be used when the journal has
// been shortened.
func (r *rig) halt() {
	r.t.Helper()
	r.Drain()
	if err := <-r.ended; err != nil {
		r.t.Errorf("Run after a soft stop: %v", err)
	}
	r.kill()
}

func TestKeyIsFreeAfterADay(t *testing.T) {
	t.Parallel()
	set := load(t, keysHCL)
	synctest.Test(t, func(t *testing.T) {
		config := Config{Journal: memory.NewJournal()}
		r := boot(t, config, set)
		id := r.first(keyed("f", "k", `{}`))
		other := time.Now()
		time.Sleep(run.KeyAge - time.Minute)
		r.repeated(keyed("f", "k", `{}`), id) // which does not make it any younger
		r.stop()
		r = boot(t, config, set)
		time.Sleep(2 * time.Minute)
		if again := r.first(keyed("f", "k", `{}`)); again == id {
			t.Errorf("after %s the key still gives run %s", time.Since(other), id)
		} else {
			r.repeated(keyed("f", "k", `{}`), again)
		}
		r.stop()
		if n := fold(t, r.journal).Keys.Len(); n != 1 {
			t.Errorf("%d keys are kept", n)
		}
	})
}

// A message that is sent twice, each with its place in the stream, makes one run;
// both places are decided.
func TestKeyTogetherWithAPosition(t *testing.T) {
	t.Parallel()
	set := load(t, keysHCL)
	synctest.Test(t, func(t *testing.T) {
		config := Config{Journal: memory.NewJournal()}
		at := func(seq uint64, key string) run.Request {
			request := keyed("f", key, `{}`)
			request.Position = run.Position{Source: "s", Seq: seq}
			return request
		}
		r := boot(t, config, set)
		id := r.first(at(3, "k"))
		r.repeated(at(4, "k"), id)
		for i := range 2 {
			if mark, err := r.Watermark(t.Context(), "s"); mark.Seq != 4 || err != nil {
				t.Errorf("the watermark is %+v, %v", mark, err)
			}
			for _, seq := range []uint64{3, 4} {
				if receipt, err := r.Submit(t.Context(), at(seq, "another")); receipt != (run.Receipt{}) || err != nil {
					t.Errorf("place %d again is answered with %+v, %v", seq, receipt, err)
				}
			}
			r.repeated(keyed("f", "k", `{}`), id)
			if i == 0 {
				r.stop()
				r = boot(t, config, set)
			}
		}
		r.first(at(5, "another"))
		r.stop()
	})
}

func TestRequestsThatMakeNoRunLeaveTheirKey(t *testing.T) {
	t.Parallel()
	set := load(t, keysHCL)
	synctest.Test(t, func(t *testing.T) {
		r := boot(t, Config{OpenRuns: 2, Invoker: guests{"a": takes(time.Minute)}}, set)
		filtered := keyed("f", "filtered", `{"n":0}`)
		filtered.Trigger.Kind, filtered.Trigger.Name = run.TriggerMessage, "m"
		if receipt, err := r.Submit(t.Context(), filtered); receipt != (run.Receipt{}) || err != nil {
			t.Errorf("a request that the filter turns away: %+v, %v", receipt, err)
		}
		refused := keyed("f", "refused", `{"n":"x"}`)
		if receipt, err := r.Submit(t.Context(), refused); !errors.As(err, new(*run.RequestError)) {
			t.Errorf("a request with a wrong param: %+v, %v", receipt, err)
		}
		ids := []run.ID{r.first(keyed("f", "filtered", `{"n":1}`)), r.first(keyed("f", "refused", `{"n":1}`))}
		for range 2 {
			if receipt, err := r.Submit(t.Context(), keyed("f", "busy", `{}`)); !errors.As(err, new(*BusyError)) {
				t.Errorf("a request too many: %+v, %v", receipt, err)
			}
		}
		r.repeated(keyed("f", "refused", `{"n":1}`), ids[1]) // no new run is needed for that
		for _, id := range ids {
			r.wait(id)
		}
		synctest.Wait()
		r.first(keyed("f", "busy", `{}`))
		r.Drain()
		synctest.Wait()
		r.repeated(keyed("f", "busy", `{}`), r.keyOf("f", "busy"))
		r.stop()
	})
}

// keyOf gives the run that a key has made.
func (r *rig) keyOf(flow, key string) (id run.ID) {
	r.onLoop(func() { id, _ = r.exec.shard.Keys.Run(flow, key, r.exec.clock.now()) })
	return id
}

// The memory for keys is bounded by their age.
func TestOldKeysAreForgotten(t *testing.T) {
	t.Parallel()
	set := load(t, keysHCL)
	synctest.Test(t, func(t *testing.T) {
		r := boot(t, Config{}, set)
		for i := range 100 {
			r.first(keyed("f", fmt.Sprint("k", i), `{}`))
			time.Sleep(time.Hour)
		}
		r.stop()
		if n := r.exec.shard.Keys.Len(); n != 25 {
			t.Errorf("%d keys are kept of the last day", n)
		}
	})
}
