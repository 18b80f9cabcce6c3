package engine

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
	"go.uber.org/goleak"

	"github.com/flowhost/flowhost/engine/memory"
	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/run/wire"
)

// TestMain collects garbage a quarter as often: a collection charges turns of the loop, which
// brisk bounds, for what the tests beside them allocate.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	debug.SetMemoryLimit(3 << 30)
	goleak.VerifyTestMain(m)
}

// catalog knows every module: it has the one function "run".
type catalog struct{}

func (catalog) Signature(ctx context.Context, path string) (run.Signature, error) {
	return catalog{}.SignatureOf(ctx, "sha256:"+filepath.Base(path))
}

func (catalog) SignatureOf(_ context.Context, digest string) (run.Signature, error) {
	return run.Signature{Digest: digest, ABI: "flowhost", Functions: []run.FunctionSignature{{Name: "run"}}}, nil
}

func load(t testing.TB, source string) *flows.Set {
	t.Helper()
	set, diags := tryLoad(t, source)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	return set
}

func tryLoad(t testing.TB, source string) (*flows.Set, hcl.Diagnostics) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "test.hcl")
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	return flows.Load(t.Context(), []string{file}, flows.Options{Catalog: catalog{}})
}

func restore(ctx context.Context, d *run.Definition) (*flows.Set, error) {
	set, diags := flows.Restore(ctx, d, flows.Options{Catalog: catalog{}})
	if diags.HasErrors() {
		return nil, diags
	}
	return set, nil
}

// guests replaces the host: a function for each task. A task without one gives
// its input back.
type guests map[string]func(context.Context, run.Call) (run.Result, error)

func (g guests) Invoke(ctx context.Context, call run.Call) (run.Result, error) {
	if f := g[call.Task]; f != nil {
		return f(ctx, call)
	}
	return gives(call.Input), nil
}

func gives(output json.RawMessage) run.Result {
	return run.Result{Outcome: run.OutcomeSucceeded, Output: output}
}

func fails(outcome run.Outcome, retryable bool) run.Result {
	return run.Result{Outcome: outcome, Failure: &run.Failure{Outcome: outcome, Code: "test", Message: "no luck", Retryable: retryable}}
}

// takes works for a while, or until its context ends.
func takes(d time.Duration) func(context.Context, run.Call) (run.Result, error) {
	return func(ctx context.Context, call run.Call) (run.Result, error) {
		select {
		case <-time.After(d):
			return gives(call.Input), nil
		case <-ctx.Done():
		}
		switch cause := context.Cause(ctx); {
		case errors.Is(cause, run.ErrDeadline):
			return fails(run.OutcomeTimedOut, true), nil
		case errors.Is(cause, run.ErrCanceled):
			return fails(run.OutcomeCanceled, false), nil
		default:
			return run.Result{}, cause
		}
	}
}

// rig is an engine that runs, with everything around it.
type rig struct {
	*Engine
	t       testing.TB
	journal Journal
	ended   chan error
	kill    context.CancelFunc
}

func boot(t testing.TB, config Config, sets ...*flows.Set) *rig {
	t.Helper()
	if config.Journal == nil {
		config.Journal = memory.NewJournal()
	}
	if config.Invoker == nil {
		config.Invoker = guests{}
	}
	config.Restore, config.suspicious = restore, true
	ctx, kill := context.WithCancel(context.Background())
	r := &rig{Engine: New(config), t: t, journal: config.Journal, ended: make(chan error, 1), kill: kill}
	go func() { r.ended <- r.Run(ctx) }()
	for _, set := range sets {
		if err := r.Deploy(ctx, set); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// stop drains the engine and checks that its journal agrees with its memory, and that
// its loop took no long turn.
func (r *rig) stop() {
	r.t.Helper()
	defer r.brisk()
	r.Drain()
	if err := <-r.ended; err != nil {
		r.t.Errorf("Run after a soft stop: %v", err)
	}
	r.kill()
	replayed := fold(r.t, r.journal)
	for _, old := range replayed.Runs {
		old.Payloads(func(p *json.RawMessage) {
			if err := r.exec.commits.blobs.fetch(context.Background(), p); err != nil {
				r.t.Error(err)
			}
		})
	}
	for id, want := range r.exec.shard.Runs {
		got := replayed.Runs[id]
		if got == nil {
			r.t.Errorf("the journal does not know run %s", id)
			continue
		}
		if diff := cmp.Diff(want.Record(nil), got.Record(nil)); diff != "" {
			r.t.Errorf("run %s differs between memory and journal:\n%s", id, diff)
		}
	}
	for id, end := range r.exec.finished.completions {
		var order []string
		for _, task := range end.record.Tasks {
			order = append(order, task.Task)
		}
		record := replayed.Runs[id].Record(order)
		if d := replayed.Definitions[record.Definition]; d != nil {
			record.Policy = d.Policies[record.Flow]
		}
		if diff := cmp.Diff(asJSON(r.t, end.record), asJSON(r.t, record)); diff != "" {
			r.t.Errorf("finished run %s differs between memory and journal:\n%s", id, diff)
		}
	}
}

// brisk checks that no turn of the loop was long. It is called after the loop has ended.
func (r *rig) brisk() {
	r.t.Helper()
	const garbage = 4 // the collector charges a turn for what all tests beside it allocate
	if long, longest := r.exec.watchdog.Report(); longest.Took > garbage*longTurn && !raceEnabled {
		r.t.Errorf("%d turns of the loop took longer than %v, one of them %v: %s %s", long, longTurn, longest.Took, longest.What, longest.Of)
	}
}

// asJSON is how a record looks from outside, one field on each line.
func asJSON(t testing.TB, record *run.Record) string {
	t.Helper()
	text, err := json.MarshalIndent(record, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// crash ends the engine at once.
func (r *rig) crash() {
	r.kill()
	<-r.ended
}

// fold gives the state that a journal holds.
func fold(t testing.TB, j Journal) *run.Shard {
	t.Helper()
	shard := run.NewShard()
	err := j.Replay(context.Background(), 0, func(revision uint64, stored []byte) error {
		commit, err := wire.DecodeCommit(stored)
		if err != nil {
			return err
		}
		for _, e := range commit.Events {
			if _, err := shard.Apply(e); err != nil {
				t.Fatalf("revision %d: %v", revision, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return shard
}

func (r *rig) submit(flow string, payload string) run.ID {
	r.t.Helper()
	receipt, err := r.Submit(context.Background(), run.Request{
		Flow:    flow,
		Trigger: run.Trigger{Kind: run.TriggerManual, Time: time.Now(), Payload: json.RawMessage(payload)},
	})
	if err != nil || !receipt.Accepted {
		r.t.Fatalf("submit: %+v, %v", receipt, err)
	}
	return receipt.Run
}

func (r *rig) wait(id run.ID) *run.Record {
	r.t.Helper()
	record, err := r.Wait(context.Background(), id)
	if err != nil {
		r.t.Fatalf("wait for %s: %v", id, err)
	}
	return record
}

func (r *rig) run(flow, payload string) *run.Record {
	r.t.Helper()
	return r.wait(r.submit(flow, payload))
}

// states gives the state of the run and of its tasks by name; the run's is under
// the empty name.
func states(r *run.Record) map[string]run.State {
	all := map[string]run.State{"": r.State}
	for _, t := range r.Tasks {
		all[t.Task] = t.State
	}
	return all
}

func taskOf(t testing.TB, r *run.Record, name string) run.TaskRecord {
	t.Helper()
	for _, task := range r.Tasks {
		if task.Task == name {
			return task
		}
	}
	t.Fatalf("the record has no task %q", name)
	return run.TaskRecord{}
}

func wantStates(t testing.TB, r *run.Record, want map[string]run.State) {
	t.Helper()
	if diff := cmp.Diff(want, states(r)); diff != "" {
		t.Errorf("states differ (-want +got):\n%s\nerror: %v", diff, r.Error)
	}
}

// notices collects what an observer receives.
type notices struct {
	mu   sync.Mutex
	list []run.Notice
}

func (n *notices) Committed(_ context.Context, notice run.Notice) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.list = append(n.list, notice)
	return nil
}

func (n *notices) Flush(context.Context) error { return nil }

func (n *notices) all() []run.Notice {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]run.Notice(nil), n.list...)
}
