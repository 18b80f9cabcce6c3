package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/artifacts"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/settings"
	"github.com/flowhost/flowhost/engine"
	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
)

const artifactFlows = `
flow "quick" {
  task "make" {
    plugin = "./m.wasm"
  }
  task "pass" {
    plugin = "./m.wasm"
    input  = { from = task.make.output }
  }
}

flow "patient" {
  task "make" {
    plugin = "./m.wasm"
  }
  wait "go" {
    signal = true
    after  = [task.make]
  }
  task "pass" {
    plugin = "./m.wasm"
    input  = task.make.output
    after  = [wait.go]
  }
}
`

// oneModule is a catalog in which every module has the one function "run".
type oneModule struct{}

func (oneModule) Signature(ctx context.Context, path string) (run.Signature, error) {
	return oneModule{}.SignatureOf(ctx, "sha256:"+filepath.Base(path))
}

func (oneModule) SignatureOf(_ context.Context, digest string) (run.Signature, error) {
	return run.Signature{Digest: digest, ABI: "flowhost", Functions: []run.FunctionSignature{{Name: "run"}}}, nil
}

// artifactWorld is a host with artifacts in a virtual time, which ends and starts again.
type artifactWorld struct {
	t        *testing.T
	settings settings.Settings
	set      *flows.Set
	openAt   func(*Link) artifacts.Store
	random   *rand.Rand

	link  *Link
	store artifacts.Store
	node  *Node
	kill  context.CancelFunc

	mu   sync.Mutex
	now  time.Time
	made []string // all digests that there ever were
	held []run.ID // runs that wait
}

func (w *artifactWorld) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *artifactWorld) advance(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

func (w *artifactWorld) check(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *artifactWorld) start() {
	w.t.Helper()
	log := slog.New(slog.DiscardHandler)
	var err error
	w.link, err = OpenLink(w.t.Context(), w.settings, false, w.set, log)
	w.check(err)
	w.store = w.openAt(w.link)
	w.link.artifacts = artifacts.New(artifacts.Config{Store: w.store, Now: w.clock})
	w.node, err = NewNode(w.t.Context(), NodeConfig{
		Settings: w.settings, Link: w.link, Flows: flows.Options{Catalog: oneModule{}}, Log: log,
		Invoker: func(engine.Invoker) engine.Invoker { return InvokerFunc(w.invoke) },
	})
	w.check(err)
	ctx, kill := context.WithCancel(context.Background())
	w.kill = kill
	w.node.Start(ctx)
	w.check(w.node.Engine.Deploy(w.t.Context(), w.set))
}

// crash ends the host without a word.
func (w *artifactWorld) crash() {
	w.kill()
	<-w.node.ended
	w.node.working.Wait()
	w.check(w.link.Close())
}

// invoke makes artifacts, some with the bytes of former ones, or passes its input on.
func (w *artifactWorld) invoke(ctx context.Context, call run.Call) (run.Result, error) {
	output := call.Input
	if call.Task == "make" {
		w.mu.Lock()
		content := fmt.Sprint(w.random.IntN(20 + len(w.made)))
		w.mu.Unlock()
		digest, err := w.link.artifacts.Keep(ctx, []byte(content), "text/plain")
		if err != nil {
			return run.Result{}, err
		}
		w.mu.Lock()
		w.made = append(w.made, digest)
		w.mu.Unlock()
		output = run.StoredOutput(digest, len(content))
	}
	return run.Result{Outcome: run.OutcomeSucceeded, Output: output}, nil
}

// step does something that may happen to a host.
func (w *artifactWorld) step() {
	w.t.Helper()
	ctx := w.t.Context()
	switch n := w.random.IntN(12); {
	case n < 4:
		_, err := w.node.Engine.Wait(ctx, w.submit("quick"))
		w.check(err)
	case n < 6:
		id := w.submit("patient")
		w.awaitWaiting(id)
		w.held = append(w.held, id)
	case n < 7 && len(w.held) > 0:
		id := w.release()
		w.check(w.node.Engine.Signal(ctx, id, "go", nil))
		_, err := w.node.Engine.Wait(ctx, id)
		w.check(err)
	case n < 8 && len(w.held) > 0:
		id := w.release()
		w.check(w.node.Engine.Cancel(ctx, id, "not needed"))
		_, err := w.node.Engine.Wait(ctx, id)
		w.check(err)
	case n < 9:
		w.repeat()
	case n < 10:
		w.crash()
		w.advance(time.Duration(w.random.Int64N(int64(3 * artifacts.Grace))))
		w.start()
	default:
		w.advance(time.Duration(w.random.Int64N(int64(2 * artifacts.Grace))))
		w.check(w.node.sweeps.sweep(ctx, w.clock()))
	}
}

func (w *artifactWorld) submit(flow string) run.ID {
	w.t.Helper()
	receipt, err := w.node.Engine.Submit(w.t.Context(), run.Request{Flow: flow, Trigger: run.Trigger{Kind: run.TriggerManual, Time: time.Now()}})
	w.check(err)
	return receipt.Run
}

func (w *artifactWorld) release() run.ID {
	i := w.random.IntN(len(w.held))
	id := w.held[i]
	w.held = slices.Delete(w.held, i, i+1)
	return id
}

// awaitWaiting returns when a run waits for its signal.
func (w *artifactWorld) awaitWaiting(id run.ID) {
	w.t.Helper()
	for version := uint64(0); ; {
		record, next, err := w.node.Engine.Watch(w.t.Context(), id, version)
		w.check(err)
		for _, t := range record.Tasks {
			if t.Task == "wait.go" && t.State == run.Running {
				return
			}
		}
		version = next
	}
}

// repeat makes the last task of a finished run again, with the output of the one before.
func (w *artifactWorld) repeat() {
	w.t.Helper()
	for id, record := range w.runs() {
		if record.State != run.Succeeded || record.Flow != "quick" {
			continue
		}
		receipt, err := w.node.Engine.Retry(w.t.Context(), id, run.RerunOptions{Task: run.TaskRef{Task: "pass"}})
		if errors.Is(err, run.ErrUnknown) {
			continue
		}
		w.check(err)
		_, err = w.node.Engine.Wait(w.t.Context(), receipt.Run)
		w.check(err)
		return
	}
}

// runs are all that exist.
func (w *artifactWorld) runs() map[run.ID]*run.Record {
	w.t.Helper()
	all := map[run.ID]*run.Record{}
	for q := (run.Query{}); ; {
		page, err := w.node.Engine.List(w.t.Context(), q)
		w.check(err)
		for _, s := range page.Runs {
			record, err := w.node.Engine.Get(w.t.Context(), s.Run)
			if errors.Is(err, run.ErrUnknown) {
				continue // dropped a moment ago
			}
			w.check(err)
			all[s.Run] = record
		}
		if page.Next == "" {
			return all
		}
		q.Before = page.Next
	}
}

// wantKept expects the artifacts of all runs, and returns them.
func (w *artifactWorld) wantKept(when string) map[string]bool {
	w.t.Helper()
	kept := map[string]bool{}
	for id, record := range w.runs() {
		text, err := json.Marshal(record)
		w.check(err)
		for digest := range run.ArtifactDigests(text) {
			if kept[digest] = true; !w.exists(digest) {
				w.t.Fatalf("%s: %s of run %s (%s %s) is gone", when, digest, id, record.Flow, record.State)
			}
		}
	}
	return kept
}

func (w *artifactWorld) exists(digest string) bool {
	w.t.Helper()
	r, err := w.store.Open(w.t.Context(), digest)
	if errors.Is(err, artifacts.ErrNotFound) {
		return false
	}
	w.check(err)
	w.check(r.Close())
	return true
}

// wantOnly sweeps after the grace until only the artifacts of runs are left, as soon as the
// history has noticed what its stream has dropped.
func (w *artifactWorld) wantOnly(when string) {
	w.t.Helper()
	for {
		w.advance(2 * artifacts.Grace) // also after a sweep that found a reference for the last time
		w.check(w.node.sweeps.sweep(w.t.Context(), w.clock()))
		kept := w.wantKept(when)
		left := 0
		for _, digest := range w.made {
			if !kept[digest] && w.exists(digest) {
				left++
			}
		}
		if left == 0 {
			return
		}
		select {
		case <-w.t.Context().Done():
			w.t.Fatalf("%s: %d artifacts are left that no run refers to", when, left)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// Whatever runs, ends, is dropped by the history and is made again, and whenever the host
// crashes: the artifacts of runs that exist are there, and the others are gone after a while.
func TestArtifactsAreKeptAsLongAsTheirRuns(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(t *testing.T) func(*Link) artifacts.Store{
		"files": func(t *testing.T) func(*Link) artifacts.Store {
			dir := t.TempDir()
			return func(l *Link) artifacts.Store {
				files, err := artifacts.OpenFiles(artifacts.FilesConfig{Dir: dir})
				if err != nil {
					t.Fatal(err)
				}
				l.closing = append(l.closing, files.Close)
				return files
			}
		},
		"objects": func(t *testing.T) func(*Link) artifacts.Store {
			return func(l *Link) artifacts.Store {
				objects, err := artifacts.OpenObjects(t.Context(), artifacts.ObjectsConfig{Conn: l.records, Quota: 1 << 30})
				if err != nil {
					t.Fatal(err)
				}
				return objects
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newArtifactWorld(t, open(t))
			w.start()
			for i := range 60 {
				w.step()
				w.wantKept(fmt.Sprintf("after step %d", i))
			}
			w.wantOnly("after the grace")
			for len(w.held) > 0 {
				id := w.release()
				w.check(w.node.Engine.Cancel(t.Context(), id, "at last"))
				_, err := w.node.Engine.Wait(t.Context(), id)
				w.check(err)
			}
			w.wantOnly("when no run is open")
			if removed := w.node.sweeps.stats().Removed; removed == 0 {
				t.Error("the host has counted no artifact that it removed")
			}
			w.emptyHistory()
			w.crash()
		})
	}
}

func newArtifactWorld(t *testing.T, open func(*Link) artifacts.Store) *artifactWorld {
	t.Helper()
	file := filepath.Join(t.TempDir(), "flows.hcl")
	if err := os.WriteFile(file, []byte(artifactFlows), 0o600); err != nil {
		t.Fatal(err)
	}
	set, diags := flows.Load(t.Context(), []string{file}, flows.Options{Catalog: oneModule{}})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return &artifactWorld{
		t: t, set: set, openAt: open, now: time.Now(), random: rand.New(rand.NewPCG(seed, 1)),
		settings: settings.Settings{Data: t.TempDir(), Streams: bus.StreamConfig{HistoryPerFlow: 3}},
	}
}

// emptyHistory removes all finished runs, and expects the artifacts to go that only they had.
func (w *artifactWorld) emptyHistory() {
	w.t.Helper()
	js, err := jetstream.New(w.link.records)
	w.check(err)
	stream, err := js.Stream(w.t.Context(), bus.StreamHistory)
	w.check(err)
	w.check(stream.Purge(w.t.Context()))
	w.crash() // the engine keeps recent runs in memory
	w.start()
	w.wantOnly("without a history")
}

// A sweep makes no bucket, and sweeps one that an earlier process has made.
func TestLateStoreSweep(t *testing.T) {
	t.Parallel()
	l, err := OpenLink(t.Context(), settings.Settings{Data: t.TempDir()}, false, new(flows.Set), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	sweep := func() artifacts.Swept {
		t.Helper()
		store := &lateStore{objects: artifacts.ObjectsConfig{Conn: l.records, Quota: 1 << 30}}
		swept, err := store.Sweep(t.Context(), func(string) (bool, error) { return false, nil }, time.Now().Add(2*artifacts.Grace))
		if err != nil {
			t.Fatal(err)
		}
		return swept
	}
	if swept := sweep(); swept.Artifacts != 0 {
		t.Errorf("%+v without a bucket", swept)
	}
	js, err := jetstream.New(l.records)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.Stream(t.Context(), bus.BucketStream(artifacts.Bucket)); !errors.Is(err, jetstream.ErrStreamNotFound) {
		t.Errorf("a sweep has made the bucket: %v", err)
	}
	made := &lateStore{objects: artifacts.ObjectsConfig{Conn: l.records, Quota: 1 << 30}}
	if _, err := artifacts.New(artifacts.Config{Store: made}).Keep(t.Context(), []byte("x"), ""); err != nil {
		t.Fatal(err)
	}
	if swept := sweep(); swept != (artifacts.Swept{Artifacts: 1, Bytes: 1}) {
		t.Errorf("%+v of one artifact", swept)
	}
}
