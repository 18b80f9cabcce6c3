package engine

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/flowhost/flowhost/engine/memory"
	"github.com/flowhost/flowhost/run"
)

const (
	manyItems = 200
	fewBytes  = 3000 // hold a small part of what is taken over from so many items
)

// copiesHCL has one run at a time.
var copiesHCL = `flow "f" {
  concurrency { limit = 1 }
  output "last" { value = [length(task.t.output), task.t.output[199]] }
` + forEach("range(200)", `on_error = "continue"`) + "}\n"

var oneItem = run.RerunOptions{Task: run.TaskRef{Task: "t", Key: "7"}}

// kindsOf are the kinds of the events of a run, repetitions left out.
func kindsOf(list []run.Notice, id run.ID) []string {
	var kinds []string
	for _, n := range list {
		if n.Event.Run == id {
			kinds = append(kinds, n.Event.Data.Kind())
		}
	}
	return slices.Compact(kinds)
}

// What does not fit into one commit is taken over in several, and published in order.
func TestTakeoverOverSeveralCommits(t *testing.T) {
	t.Parallel()
	set := load(t, copiesHCL)
	synctest.Test(t, func(t *testing.T) {
		told := &notices{}
		r := boot(t, Config{
			Journal: narrow{memory.NewJournal(), fewBytes}, Invoker: guests{"t": takes(time.Second)},
			Observers: []Observation{{Observer: told}},
		}, set)
		old := r.run("f", `null`)
		receipt, err := r.Retry(t.Context(), old.Run, oneItem)
		if err != nil || !receipt.Accepted {
			t.Fatalf("Retry = %+v, %v", receipt, err)
		}
		record := r.wait(receipt.Run)
		reused := 0
		for _, task := range record.Tasks {
			if task.Key != nil && task.Reused {
				reused++
			}
		}
		if record.State != run.Succeeded || string(record.Output) != string(old.Output) || reused != manyItems-1 || len(record.Tasks) != manyItems+1 {
			t.Errorf("the run is %s with %d of %d tasks taken over, output %.200s, error %v", record.State, reused, len(record.Tasks), record.Output, record.Error)
		}
		revisions := map[uint64]bool{}
		r.stop()
		for _, n := range told.all() {
			if _, ok := n.Event.Data.(*run.TaskReused); ok {
				revisions[n.Revision] = true
			}
		}
		if len(revisions) < 3 {
			t.Errorf("they were in %d commits", len(revisions))
		}
		want := []string{run.KindSubmitted, run.KindTaskReused, run.KindStarted, run.KindAttemptStarted, run.KindAttemptFinished, run.KindTaskEnded, run.KindFinished}
		if diff := cmp.Diff(want, kindsOf(told.all(), receipt.Run)); diff != "" {
			t.Errorf("what was told (-want +got):\n%s", diff)
		}
	})
}

// What fits into one commit is in one: then there is a run or none.
func TestTakeoverInOneCommit(t *testing.T) {
	t.Parallel()
	set := load(t, copiesHCL)
	synctest.Test(t, func(t *testing.T) {
		told := &notices{}
		r := boot(t, Config{Observers: []Observation{{Observer: told}}}, set)
		receipt, err := r.Retry(t.Context(), r.run("f", `null`).Run, oneItem)
		if err != nil {
			t.Fatal(err)
		}
		r.wait(receipt.Run)
		r.stop()
		revisions := map[uint64]bool{}
		for _, n := range told.all() {
			switch d := n.Event.Data.(type) {
			case *run.Submitted:
				if d.Awaits != 0 {
					t.Errorf("the run awaits %d", d.Awaits)
				}
			case *run.TaskReused:
				revisions[n.Revision] = true
			}
		}
		if len(revisions) != 1 {
			t.Errorf("it took %d commits", len(revisions))
		}
	})
}

// The process may end between any two commits of a takeover, a snapshot coming in
// between. A run of which a part is missing was promised to nobody, never starts and
// is over at once; one that was promised continues with everything.
func TestProcessEndsDuringATakeover(t *testing.T) {
	t.Parallel()
	set := load(t, copiesHCL)
	cut, whole := 0, 0
	for deeds := 1; ; deeds++ {
		promised := 0
		for _, done := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				m := newRemains(t)
				config := m.config()
				config.Journal, config.Invoker = narrow{m.journal, fewBytes}, guests{"t": takes(time.Second)}
				r := boot(t, config, set)
				old := r.run("f", `null`)
				r.Drain()
				if err := <-r.ended; err != nil {
					t.Fatal(err)
				}
				r.kill()

				config, fuse := m.mortal(deeds, done)
				config.Journal, config.Invoker = mortalJournal{narrow{m.journal, fewBytes}, fuse}, guests{"t": takes(time.Second)}
				config.History = oneRecord{old}
				e := New(config)
				e.exec.config.Restore = restore
				ctx, kill := context.WithCancel(t.Context())
				fuse.kill = kill
				over := make(chan error, 1)
				go func() { over <- e.Run(ctx) }()
				var before, receipt run.Receipt
				var err error
				if e.Deploy(ctx, set) == nil {
					before, _ = e.Submit(ctx, run.Request{Flow: "f"}) // has the slot
					receipt, err = e.Retry(ctx, old.Run, oneItem)
				}
				if err == nil {
					time.Sleep(time.Minute)
				}
				if receipt.Accepted {
					promised++
				}
				kill()
				<-over

				told := &notices{}
				config = m.config()
				config.Journal, config.Invoker = narrow{m.journal, fewBytes}, guests{"t": takes(time.Second)}
				config.Observers = []Observation{{Observer: told, CatchUp: true}}
				r = boot(t, config, set)
				time.Sleep(time.Hour)
				r.Drain()
				if err := <-r.ended; err != nil {
					t.Errorf("deed %d (done: %t): %v", deeds, done, err)
				}
				r.kill()
				if m.journal.open() > 0 {
					t.Errorf("deed %d (done: %t): %d runs are open\n%s", deeds, done, m.journal.open(), &m.diary)
				}
				for _, id := range []run.ID{before.Run, receipt.Run} {
					if id != "" && m.journal.state(id) != run.Succeeded {
						t.Errorf("deed %d (done: %t): run %s, which was promised, is %s\n%s", deeds, done, id, m.journal.state(id), &m.diary)
					}
				}
				for _, n := range told.all() {
					if n.Record == nil || n.Record.RetryOf == "" {
						continue
					}
					if n.Record.State == run.Succeeded {
						whole++
						continue
					}
					cut++
					if n.Record.State != run.Canceled || n.Record.Run == receipt.Run || n.Record.StartedAt != nil ||
						n.Record.Error == nil || !strings.Contains(n.Record.Error.Message, "while the run was being accepted") {
						t.Errorf("deed %d (done: %t): a run that misses something is %+v", deeds, done, n.Record)
					}
				}
			})
		}
		if t.Failed() || promised == 2 {
			break // what comes later is that of any run
		}
	}
	if cut < 5 || whole < 2 {
		t.Errorf("%d runs were cut off and %d were not", cut, whole)
	}
}

// What is too large by itself is refused, and nothing of it continues.
func TestTakeoverOfWhatIsTooLarge(t *testing.T) {
	t.Parallel()
	set := load(t, copiesHCL)
	synctest.Test(t, func(t *testing.T) {
		journal := memory.NewJournal()
		var well atomic.Bool
		guest := func(ctx context.Context, call run.Call) (run.Result, error) {
			if call.Key == "150" && !well.Load() {
				r := fails(run.OutcomeFailed, false)
				r.Failure.Details = json.RawMessage(text("x", 2*fewBytes))
				return r, nil
			}
			return gives(call.Input), nil
		}
		r := boot(t, Config{Journal: journal, Invoker: guests{"t": guest}}, set)
		old := r.run("f", `null`)
		r.Drain()
		if err := <-r.ended; err != nil {
			t.Fatal(err)
		}
		r.kill()
		well.Store(true)
		told := &notices{}
		records := Config{Journal: narrow{journal, fewBytes}, Invoker: guests{"t": guest}, Observers: []Observation{{Observer: told}}, History: oneRecord{old}}
		r = boot(t, records, set)
		_, err := r.Retry(t.Context(), old.Run, oneItem)
		if wrong := (*run.RequestError)(nil); !errors.As(err, &wrong) || wrong.Code != run.RequestSize {
			t.Errorf("Retry = %v", err)
		}
		if page, err := r.List(t.Context(), run.Query{States: []run.State{run.Pending, run.Running}}); err != nil || len(page.Runs) != 0 {
			t.Errorf("open runs %+v, %v", page.Runs, err)
		}
		whole, err := r.Retry(t.Context(), old.Run, run.RerunOptions{Whole: true})
		if err != nil || r.wait(whole.Run).State != run.Succeeded {
			t.Errorf("the whole run again: %+v, %v", whole, err)
		}
		r.stop()
		kinds := kindsOf(told.all(), told.all()[0].Event.Run)
		if diff := cmp.Diff([]string{run.KindSubmitted, run.KindTaskReused, run.KindTaskEnded, run.KindFinished}, kinds); diff != "" {
			t.Errorf("what was told (-want +got):\n%s", diff)
		}
	})
}

// oneRecord is a history with one run.
type oneRecord struct{ record *run.Record }

func (o oneRecord) Get(_ context.Context, id run.ID) (*run.Record, error) {
	if id != o.record.Run {
		return nil, run.ErrUnknown
	}
	return o.record, nil
}

func (oneRecord) List(context.Context, run.Query) (run.Page, error) { return run.Page{}, nil }
