package flowtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/flowhost/flowhost/engine"
	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/internal/virtual"
	"github.com/flowhost/flowhost/run"
)

// answers are those to waits that are still to be given.
type answers struct {
	timed []answer // by time
	now   []answer // to waits that have begun
	fresh bool     // there are some that the Runner does not know of
}

// answer is one block of a test, for one run of the tested flow.
type answer struct {
	*flows.Answer
	due  time.Time
	root run.ID
	of   run.ID // the run that waits; empty for all that are within root
}

// foresee notes the answers that an event asks for.
func (t *trial) foresee(e run.Event) {
	for _, a := range t.Test.Answers {
		switch d := e.Data.(type) {
		case *run.Started:
			if a.After > 0 && t.trace.Outermost(e.Run) {
				t.answers.add(answer{Answer: a, due: e.At.Add(a.After), root: e.Run})
			}
		case *run.WaitStarted:
			if a.After == 0 && t.trace.Path(e.Run, d.Task) == a.Wait {
				t.answers.now = append(t.answers.now, answer{Answer: a, of: e.Run})
				t.answers.fresh = true
			}
		}
	}
	if _, ended := e.Data.(*run.Finished); ended {
		t.tooLate(e)
	}
}

// tooLate reports the answers for which a run that ends has not waited.
func (t *trial) tooLate(e run.Event) {
	t.answers.timed = slices.DeleteFunc(t.answers.timed, func(a answer) bool {
		if a.root != e.Run {
			return false
		}
		took := e.At.Sub(a.due.Add(-a.After))
		t.unwanted(a, fmt.Sprintf("it has ended: it took %s.", took))
		return true
	})
}

// unwanted reports an answer that nobody waits for, once for each block.
func (t *trial) unwanted(a answer, why string) {
	key := a.Range.String()
	if !t.reported[key] {
		t.reported[key] = true
		t.problemAt(a.Range, "Nothing waits for this", fmt.Sprintf("%s after the start of the run, %s", a.After, why))
	}
}

func (all *answers) add(a answer) {
	all.timed = append(all.timed, a)
	slices.SortStableFunc(all.timed, func(a, b answer) int { return a.due.Compare(b.due) })
	all.fresh = true
}

// take takes out those that are due.
func (all *answers) take(now time.Time) []answer {
	due := all.now
	all.now = nil
	for len(all.timed) > 0 && !all.timed[0].due.After(now) {
		due = append(due, all.timed[0])
		all.timed = all.timed[1:]
	}
	return due
}

// pass lets time pass, and gives the answers to waits. One that is due at an
// instant comes after all that happens at it by itself.
func (t *trial) pass(ctx context.Context, r *virtual.Runner, end time.Time, enough func() bool) error {
	for {
		until := end
		if timed := t.answers.timed; len(timed) > 0 && timed[0].due.Before(end) {
			until = timed[0].due
		}
		t.answers.fresh = false
		if err := r.Until(ctx, until, func() bool { return t.answers.fresh || enough() }); err != nil {
			return err
		}
		due := t.answers.take(r.Now())
		for _, a := range due {
			if err := t.answer(ctx, r, a); err != nil {
				return err
			}
		}
		if len(due) == 0 && !t.answers.fresh && (enough() || !r.Now().Before(end)) {
			return nil
		}
	}
}

// answer gives an answer to whoever waits for it.
func (t *trial) answer(ctx context.Context, r *virtual.Runner, a answer) error {
	waiting, given := []run.ID{a.of}, 0
	if a.of == "" {
		waiting = t.trace.Waiting(a.root, a.Wait)
	}
	for _, of := range waiting {
		name := a.Wait[strings.LastIndex(a.Wait, "/")+1:]
		var err error
		if a.Approval != nil {
			err = r.Engine().Approve(ctx, of, name, *a.Approval)
		} else {
			err = r.Engine().Signal(ctx, of, name, a.Payload)
		}
		refused := (*run.RequestError)(nil)
		switch {
		case errors.As(err, &refused):
			t.problemAt(a.Range, "The answer was refused", sentence(refused.Message))
		case errors.Is(err, engine.ErrWaitEnded), errors.Is(err, run.ErrUnknown):
			continue // canceled in the meantime
		case err != nil:
			return err
		}
		given++
	}
	if given == 0 && a.of == "" {
		t.unwanted(a, t.whyNot(ctx, r, a))
	}
	return nil
}

// whyNot reports why nobody takes an answer.
func (t *trial) whyNot(ctx context.Context, r *virtual.Runner, a answer) string {
	if record, err := r.Engine().Get(ctx, a.root); err == nil {
		for _, task := range record.Tasks {
			if task.Task == flows.WaitPrefix+a.Wait && task.State.Done() {
				return fmt.Sprintf("the wait %q has ended already: it is %s.", a.Wait, task.State)
			}
		}
	}
	return fmt.Sprintf("the wait %q is not open. Leave out \"after\" to answer it as soon as it opens.", a.Wait)
}

// unanswered lists the answers for which unfinished runs wait.
func (t *trial) unanswered() string {
	var blocks []string
	for _, path := range t.trace.Waits() {
		if by := t.Test.AnsweredBy(path); by != "" {
			blocks = append(blocks, fmt.Sprintf("%s %q {}", by, path))
		}
	}
	if len(blocks) == 0 {
		return ""
	}
	return " It waits for an answer. Write " + strings.Join(blocks, " and ") + " in the test."
}
