package journal_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/flowhost/flowhost/bus/internal/bustest"
	"github.com/flowhost/flowhost/bus/journal"
	"github.com/flowhost/flowhost/bus/natsd"
	"github.com/flowhost/flowhost/engine"
	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/run/wire"
)

// oneModule is a catalog in which every module has one function.
type oneModule struct{}

func (oneModule) Signature(ctx context.Context, path string) (run.Signature, error) {
	return oneModule{}.SignatureOf(ctx, "sha256:"+filepath.Base(path))
}

func (oneModule) SignatureOf(_ context.Context, digest string) (run.Signature, error) {
	return run.Signature{Digest: digest, ABI: "flowhost", Functions: []run.FunctionSignature{{Name: "run"}}}, nil
}

// echo gives back what it is given.
type echo struct{}

func (echo) Invoke(_ context.Context, call run.Call) (run.Result, error) {
	return run.Result{Outcome: run.OutcomeSucceeded, Output: call.Input}, nil
}

// Two engines on one journal of one server: the first commit decides. The one that
// comes too late steps down, whatever it was asked for was not accepted, and what
// the other one accepted is recorded once.
func TestEnginesFightForAJournalOnTheServer(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "f.hcl")
	source := "flow \"f\" {\n  task \"a\" {\n    plugin = \"./m.wasm\"\n    input  = trigger.payload\n  }\n}\n"
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	set, diags := flows.Load(t.Context(), []string{file}, flows.Options{Catalog: oneModule{}})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	s := bustest.StartServer(t, natsd.Config{Sync: natsd.SyncRelaxed})
	accepted := map[run.ID]bool{}
	for range 5 {
		fight(t, s, set, accepted)
	}
	ends := map[run.ID]int{}
	err := bustest.OpenJournal(t, bustest.ConnectJournal(t, s), journal.Config{}).Replay(t.Context(), 0, func(_ uint64, stored []byte) error {
		commit, err := wire.DecodeCommit(stored)
		if err != nil {
			return err
		}
		for _, e := range commit.Events {
			if _, done := e.Data.(*run.Finished); done {
				ends[e.Run]++
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for id := range accepted {
		if ends[id] != 1 {
			t.Errorf("run %s was accepted and has %d ends", id, ends[id])
		}
	}
}

// fight lets two engines be asked for runs until one of them has stepped down.
func fight(t *testing.T, s *natsd.Server, set *flows.Set, accepted map[run.ID]bool) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	ended := make(chan error, 2)
	var mu sync.Mutex
	var asking, running sync.WaitGroup
	var engines []*engine.Engine
	for range 2 {
		e := engine.New(engine.Config{
			Journal: bustest.OpenJournal(t, bustest.ConnectJournal(t, s), journal.Config{}), Invoker: echo{},
			Restore: func(context.Context, *run.Definition) (*flows.Set, error) { return set, nil },
		})
		running.Go(func() { ended <- e.Run(ctx) })
		if err := e.Deploy(ctx, set); err != nil {
			t.Fatal(err)
		}
		engines = append(engines, e)
	}
	fighting, over := context.WithCancel(ctx)
	for i := range 4 {
		asking.Go(func() {
			for fighting.Err() == nil {
				receipt, err := engines[i%2].Submit(ctx, run.Request{Flow: "f", Trigger: run.Trigger{Payload: json.RawMessage("1")}})
				if errors.Is(err, engine.ErrStopped) {
					return
				}
				mu.Lock()
				accepted[receipt.Run] = true
				mu.Unlock()
				if _, lost := engines[i%2].Wait(ctx, receipt.Run); err != nil || lost != nil && !errors.Is(lost, engine.ErrStopped) {
					t.Error(err, lost)
					return
				}
			}
		})
	}
	if err := <-ended; !errors.Is(err, run.ErrFenced) {
		t.Errorf("the loser ends with %v", err)
	}
	over()
	asking.Wait()
	for _, e := range engines {
		e.Drain()
	}
	if err := <-ended; err != nil {
		t.Errorf("the winner ends with %v", err)
	}
	running.Wait()
}
