package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/flowhost/flowhost/engine/memory"
	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/run/wire"
)

const diamondHCL = `
flow "f" {
  concurrency {
    limit = 1
  }
  task "split" {
    plugin = "./m.wasm"
    input  = trigger.payload
    grant {
      publish = ["parts.made"]
    }
  }
  task "left" {
    plugin = "./m.wasm"
    input  = task.split.output.a
    retry {
      attempts = 3
      delay    = "5s"
    }
  }
  task "right" {
    plugin = "./m.wasm"
    input  = task.split.output.b
  }
  task "never" {
    plugin = "./m.wasm"
    when   = task.split.output.a > 100
  }
  task "join" {
    plugin = "./m.wasm"
    input  = [task.left.output, task.right.output, task.never.output]
  }
  output "all" {
    value = task.join.output
  }
}`

// flaky fails each task's first attempt, so that every kind of event occurs.
func flaky() guests {
	return guests{"left": func(_ context.Context, c run.Call) (run.Result, error) {
		if c.Attempt == 1 {
			return fails(run.OutcomeFailed, true), nil
		}
		return gives(c.Input), nil
	}}
}

// prefix gives a journal with the first commits of another.
func prefix(t *testing.T, j Journal, n uint64) *memory.Journal {
	t.Helper()
	cut := memory.NewJournal()
	j.Replay(t.Context(), 0, func(revision uint64, commit []byte) error {
		if revision <= n {
			cut.Append(t.Context(), revision-1, commit)
		}
		return nil
	})
	return cut
}

// The process may end after any commit. Whatever is in the journal then is
// finished by the next engine, with the same result.
func TestRunsContinueFromEveryRevision(t *testing.T) {
	t.Parallel()
	set := load(t, diamondHCL)
	synctest.Test(t, func(t *testing.T) {
		whole := memory.NewJournal()
		r := boot(t, Config{Journal: whole, Invoker: flaky(), Workers: 1}, set)
		want := map[run.ID]*run.Record{}
		for _, payload := range []string{`{"a":1,"b":2}`, `{"a":3,"b":4}`} {
			id := r.submit("f", payload)
			want[id] = r.wait(id)
		}
		r.stop()
		for n := range whole.Last() {
			journal := prefix(t, whole, n)
			accepted := fold(t, journal).Runs
			r := boot(t, Config{Journal: journal, Invoker: flaky(), Workers: 1}, set)
			for id, before := range accepted {
				if before.State.Done() {
					continue
				}
				got := r.wait(id)
				if diff := cmp.Diff(string(want[id].Output), string(got.Output)); diff != "" || got.State != run.Succeeded {
					t.Errorf("after revision %d: run is %s (%v), output differs:\n%s", n, got.State, got.Error, diff)
				}
			}
			r.stop()
		}
	})
}

// A crash loses the attempts under way; they are made again with the same input,
// and count as lost.
func TestCrashLosesAttemptsNotRuns(t *testing.T) {
	t.Parallel()
	set := load(t, diamondHCL)
	synctest.Test(t, func(t *testing.T) {
		journal := memory.NewJournal()
		r := boot(t, Config{Journal: journal, Invoker: guests{"left": takes(time.Hour), "right": takes(time.Hour)}}, set)
		first, second := r.submit("f", `{"a":1,"b":2}`), r.submit("f", `{"a":3,"b":4}`)
		time.Sleep(time.Second)
		r.crash()

		r = boot(t, Config{Journal: journal}, set)
		record := r.wait(first)
		if left := taskOf(t, record, "left"); left.Attempts != 2 || string(left.Input) != "1" {
			t.Errorf("left was made in %d attempts with %s", left.Attempts, left.Input)
		}
		if split := taskOf(t, record, "split"); split.Attempts != 1 {
			t.Errorf("split had succeeded and was made again: %d attempts", split.Attempts)
		}
		if got := string(r.wait(second).Output); got != `{"all":[3,4,null]}` {
			t.Errorf("the run that waited for its slot gives %s", got)
		}
		r.stop()
	})
}

func TestRunKeepsTheDefinitionItWasAcceptedWith(t *testing.T) {
	t.Parallel()
	old := load(t, `flow "f" {
  task "a" { plugin = "./m.wasm" }
  output "v" {
    value = "old"
  }
}`)
	changed := load(t, `flow "f" {
  task "z" { plugin = "./m.wasm" }
  output "v" {
    value = "new"
  }
}`)
	synctest.Test(t, func(t *testing.T) {
		journal := memory.NewJournal()
		r := boot(t, Config{Journal: journal, Invoker: guests{"a": takes(time.Minute)}}, old)
		id := r.submit("f", `null`)
		time.Sleep(time.Second)
		r.crash()

		r = boot(t, Config{Journal: journal}, changed)
		if got := string(r.wait(id).Output); got != `{"v":"old"}` {
			t.Errorf("the run in progress gives %s", got)
		}
		if got := string(r.run("f", `null`).Output); got != `{"v":"new"}` {
			t.Errorf("a new run gives %s", got)
		}
		r.stop()
	})
}

func TestRunWhoseDefinitionIsLostFailsWithAReason(t *testing.T) {
	t.Parallel()
	set := load(t, diamondHCL)
	synctest.Test(t, func(t *testing.T) {
		journal := memory.NewJournal()
		r := boot(t, Config{Journal: journal, Invoker: guests{"left": takes(time.Minute)}}, set)
		id := r.submit("f", `{"a":1,"b":2}`)
		time.Sleep(time.Second)
		r.crash()

		told := &notices{}
		engine := New(Config{
			Journal: journal, Invoker: guests{}, Observers: []Observation{{Observer: told}},
			Restore: func(context.Context, *run.Definition) (*flows.Set, error) {
				return nil, errors.New("module sha256:m is gone")
			},
		})
		ended := make(chan error)
		go func() { ended <- engine.Run(t.Context()) }()
		<-engine.Ready()
		engine.Drain()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		last := told.all()[len(told.all())-1]
		if last.Event.Run != id || last.Record == nil || last.Record.Error.Code != run.CodeDefinition || !strings.Contains(last.Record.Error.Message, "is gone") {
			t.Errorf("the last notice is %+v", last)
		}
		fold(t, journal)
	})
}

func TestObserversAreToldWhatTheyMissed(t *testing.T) {
	t.Parallel()
	set := load(t, diamondHCL)
	synctest.Test(t, func(t *testing.T) {
		journal, first := memory.NewJournal(), &notices{}
		r := boot(t, Config{Journal: journal, Observers: []Observation{{Observer: first}}, Invoker: flaky()}, set)
		r.run("f", `{"a":1,"b":2}`)
		r.stop()
		all := first.all()
		for i := 1; i < len(all); i++ {
			a, b := all[i-1], all[i]
			if b.Revision < a.Revision || b.Revision == a.Revision && b.Index != a.Index+1 {
				t.Fatalf("notice %d.%d follows %d.%d", b.Revision, b.Index, a.Revision, a.Index)
			}
		}
		for _, seen := range []int{0, len(all) / 2, len(all) - 1} {
			second := &notices{}
			r := boot(t, Config{
				Journal: journal, Observers: []Observation{{Observer: second, CatchUp: true, Seen: Place{all[seen].Revision, all[seen].Index}}},
			}, set)
			<-r.Ready()
			r.stop()
			missed := second.all()
			if got, want := len(missed), len(all)-1-seen; got != want {
				t.Fatalf("after notice %d the observer is told %d more, want %d", seen, got, want)
			}
			if len(missed) == 0 {
				continue
			}
			last := missed[len(missed)-1].Record
			if diff := cmp.Diff(asJSON(t, all[len(all)-1].Record), asJSON(t, last)); diff != "" || last.Policy == "" {
				t.Errorf("the record changed:\n%s", diff)
			}
		}
	})
}

// An observer may have received what the journal has lost since. Notified again, a
// notice says of which commit it is.
func TestObserversKnowMoreThanTheJournal(t *testing.T) {
	t.Parallel()
	set := load(t, diamondHCL)
	synctest.Test(t, func(t *testing.T) {
		whole, first := memory.NewJournal(), &notices{}
		r := boot(t, Config{Journal: whole, Observers: []Observation{{Observer: first}}, Invoker: flaky()}, set)
		r.run("f", `{"a":1,"b":2}`)
		r.stop()
		last := whole.Last()
		for _, seen := range []Place{{}, {Revision: last - 2}} {
			second := &notices{}
			config := Config{
				Journal: readOnly{prefix(t, whole, last-1)}, Invoker: guests{}, Restore: restore,
				Observers: []Observation{{Observer: second, CatchUp: true, Seen: seen, Published: last}},
			}
			var lost *TruncatedError
			if err := New(config).Run(t.Context()); !errors.As(err, &lost) || *lost != (TruncatedError{Last: last - 1, Published: last}) {
				t.Errorf("Run gives %v", err)
			}
			config.AcceptLoss = true
			second.list = nil
			r := boot(t, config, set)
			<-r.Ready()
			r.crash()
			var want, got []string
			for _, n := range first.all() {
				if n.Revision < last && (n.Revision > seen.Revision || n.Revision == seen.Revision && n.Index > seen.Index) {
					want = append(want, fmt.Sprintf("%d-%d-%x", n.Revision, n.Index, n.Sum))
				}
			}
			for _, n := range second.all() {
				got = append(got, fmt.Sprintf("%d-%d-%x", n.Revision, n.Index, n.Sum))
			}
			if diff := cmp.Diff(want, got); diff != "" || len(want) == 0 {
				t.Errorf("after %v the observer is told (-want +got):\n%s", seen, diff)
			}
		}
	})
}

// Others may know of a commit of which no observer keeps anything.
func TestOthersKnowMoreThanTheJournal(t *testing.T) {
	t.Parallel()
	set := load(t, diamondHCL)
	synctest.Test(t, func(t *testing.T) {
		whole := memory.NewJournal()
		var durable []uint64
		note := func(revision uint64) { durable = append(durable, revision) }
		r := boot(t, Config{Journal: whole, Durable: note, Invoker: flaky()}, set)
		r.run("f", `{"a":1,"b":2}`)
		r.stop()
		last := whole.Last()
		if len(durable) < 2 || durable[0] != 0 || !slices.IsSorted(durable) || durable[len(durable)-1] != last {
			t.Fatalf("durable are %v, and the journal ends at %d", durable, last)
		}
		config := Config{Journal: readOnly{prefix(t, whole, last-1)}, Invoker: guests{}, Restore: restore, Published: last, Durable: note}
		var lost *TruncatedError
		if err := New(config).Run(t.Context()); !errors.As(err, &lost) || *lost != (TruncatedError{Last: last - 1, Published: last}) {
			t.Errorf("Run gives %v", err)
		}
		config.AcceptLoss = true
		durable = nil
		r = boot(t, config, set)
		<-r.Ready()
		r.crash()
		if !slices.Equal(durable[:1], []uint64{last - 1}) {
			t.Errorf("after the loss was accepted durable are %v, want %d first", durable, last-1)
		}
	})
}

func TestDamagedJournalIsReportedWithItsPlace(t *testing.T) {
	t.Parallel()
	var impossible wire.Commit
	if err := impossible.Add(run.Event{Run: "x", Data: &run.Started{}}); err != nil {
		t.Fatal(err)
	}
	for name, commit := range map[string][]byte{
		"not a commit":      []byte("garbage"),
		"impossible event":  impossible.Seal(1),
		"a version to come": {0xf7, 99},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			journal := memory.NewJournal()
			journal.Append(t.Context(), 0, new(wire.Commit).Seal(0))
			journal.Append(t.Context(), 1, commit)
			err := New(Config{Journal: journal, Invoker: guests{}, Restore: restore}).Run(t.Context())
			if err == nil || !strings.Contains(err.Error(), "revision 2") {
				t.Errorf("Run gives %v", err)
			}
		})
	}
}

func TestTheSlowerOfTwoEnginesStepsDown(t *testing.T) {
	t.Parallel()
	set := load(t, diamondHCL)
	synctest.Test(t, func(t *testing.T) {
		journal := memory.NewJournal()
		a := boot(t, Config{Journal: journal}, set)
		b := boot(t, Config{Journal: journal}, set)
		won := a.submit("f", `{"a":1,"b":2}`)
		_, err := b.Submit(t.Context(), run.Request{Flow: "f", Trigger: run.Trigger{Payload: json.RawMessage(`{"a":1,"b":2}`)}})
		if !errors.Is(err, ErrStopped) {
			t.Errorf("the submitter of the loser is answered with %v", err)
		}
		if err := <-b.ended; !errors.Is(err, run.ErrFenced) {
			t.Errorf("the loser ends with %v", err)
		}
		b.kill()
		if record := a.wait(won); record.State != run.Succeeded {
			t.Errorf("the winner's run is %s", record.State)
		}
		a.stop()
	})
}

// shaky is a journal that refuses and delays.
type shaky struct {
	Journal
	away atomic.Bool
}

func (s *shaky) Append(ctx context.Context, after uint64, commit []byte) (uint64, error) {
	if s.away.Load() {
		return 0, errors.New("the disk is full")
	}
	time.Sleep(10 * time.Millisecond)
	return s.Journal.Append(ctx, after, commit)
}

func TestNothingLeavesBeforeItIsDurable(t *testing.T) {
	t.Parallel()
	set := load(t, diamondHCL)
	synctest.Test(t, func(t *testing.T) {
		journal, told := &shaky{Journal: memory.NewJournal()}, &notices{}
		r := boot(t, Config{Journal: journal, Observers: []Observation{{Observer: told}}}, set)
		journal.away.Store(true)
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		_, err := r.Submit(ctx, run.Request{Flow: "f", Trigger: run.Trigger{Payload: json.RawMessage(`{"a":1,"b":2}`)}})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a submit that is not durable is answered with %v", err)
		}
		if n := len(told.all()); n != 0 {
			t.Errorf("observers were told of %d events that are not durable", n)
		}
		journal.away.Store(false)
		time.Sleep(time.Minute)
		last := told.all()[len(told.all())-1]
		if last.Record == nil || last.Record.State != run.Succeeded {
			t.Errorf("after the journal came back the last notice is %+v", last)
		}
		r.stop()
	})
}

// stuck is an observer that takes nothing until it is let go.
type stuck struct{ letGo chan struct{} }

func (stuck) Flush(context.Context) error { return nil }

func (s stuck) Committed(ctx context.Context, _ run.Notice) error {
	select {
	case <-s.letGo:
	case <-ctx.Done():
	}
	return nil
}

func TestSlowObserverSlowsThePublisher(t *testing.T) {
	t.Parallel()
	set := load(t, `flow "f" {
  task "a" { plugin = "./m.wasm" }
}`)
	synctest.Test(t, func(t *testing.T) {
		observer := stuck{make(chan struct{})}
		r := boot(t, Config{Observers: []Observation{{Observer: observer}}}, set)
		accepted := 0
		for {
			ctx, stop := context.WithTimeout(t.Context(), time.Second)
			_, err := r.Submit(ctx, run.Request{Flow: "f"})
			stop()
			if err != nil {
				break
			}
			if accepted++; accepted > 10*maxOutbox {
				t.Fatal("the engine never pushed back")
			}
		}
		close(observer.letGo)
		synctest.Wait()
		r.submit("f", `null`)
		r.stop()
		if done := len(fold(t, r.journal).Runs); done < accepted+1 {
			t.Errorf("%d runs are recorded, %d were accepted", done, accepted+1)
		}
	})
}

func TestSlowObserverIsBehindByABoundedNumberOfEvents(t *testing.T) {
	t.Parallel()
	set := load(t, `flow "f" {
  task "a" { plugin = "./m.wasm" }
}`)
	synctest.Test(t, func(t *testing.T) {
		observer := stuck{make(chan struct{})}
		r := boot(t, Config{Observers: []Observation{{Observer: observer}}, OpenRuns: 10 * maxUnnotified}, set)
		batch := make([]run.Request, 1000)
		for i := range batch {
			batch[i] = run.Request{Flow: "f"}
		}
		accepted := 0
		for accepted <= maxUnnotified {
			ctx, stop := context.WithTimeout(t.Context(), time.Second)
			decided, err := r.SubmitBatch(ctx, batch)
			stop()
			accepted += decided
			if err != nil {
				break
			}
		}
		if accepted > maxUnnotified {
			t.Errorf("%d runs were accepted while nothing was told", accepted)
		}
		close(observer.letGo)
		synctest.Wait()
		r.stop()
	})
}
