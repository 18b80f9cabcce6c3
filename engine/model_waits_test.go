package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
)

// waitPlan is what a wait waits for.
type waitPlan struct {
	kind    flows.WaitFor
	takes   time.Duration // of WaitDuration
	timeout time.Duration // 0 for none
}

func randomWait(rng *rand.Rand) *waitPlan {
	w := &waitPlan{
		kind:    pick(rng, flows.WaitDuration, flows.WaitSignal, flows.WaitSubject, flows.WaitApproval),
		takes:   pick(rng, 0, time.Second, 10*time.Second, time.Minute),
		timeout: pick(rng, time.Second, 20*time.Second, 5*time.Minute),
	}
	if w.kind == flows.WaitDuration && chance(rng, 2) {
		w.timeout = 0
	}
	return w
}

func (w *waitPlan) hcl(b *strings.Builder, t *taskPlan, after string) {
	fmt.Fprintf(b, "  wait %q {\n    run_on = %q\n    after = [%s]\n", waitName(t.name), t.runOn, after)
	value := map[flows.WaitFor]string{
		flows.WaitDuration: fmt.Sprintf("%q", w.takes), flows.WaitSignal: "true", flows.WaitSubject: `"a.${run.id}"`, flows.WaitApproval: `"${trigger.payload.tag}?"`,
	}[w.kind]
	fmt.Fprintf(b, "    %s = %s\n", w.kind, value)
	if w.timeout > 0 {
		fmt.Fprintf(b, "    timeout = %q\n", w.timeout)
	}
}

// reference is how others refer to a task: by ".output", ".state" or as a whole.
func (t *taskPlan) reference(suffix string) string {
	if t.wait == nil {
		return "task." + t.name + suffix
	}
	return t.name + strings.Replace(suffix, ".output", ".payload", 1)
}

// followed reports whether a task that is no wait comes after one.
func (f *flowPlan) followed(i int) bool {
	for n, t := range f.tasks {
		if slices.Contains(t.upstream(), i) && (t.wait == nil || f.followed(n)) {
			return true
		}
	}
	return false
}

// checkWait follows a wait that runs.
func (s *story) checkWait(t *taskPlan) error {
	var began *run.WaitStarted
	var since time.Time
	for i, e := range s.events {
		switch d := e.Data.(type) {
		case *run.WaitStarted:
			if d.Task == t.name {
				if began != nil || i > s.stopped(t) {
					return errors.New("it starts twice, or after it was stopped")
				}
				began, since = d, e.At
			}
		case *run.WaitEnded:
			if d.Task == t.name {
				return s.checkWaitEnd(t, began, d, since, e.At, i)
			}
		}
	}
	return fmt.Errorf("it has not waited: it is %s", s.task(t.name).State)
}

func (s *story) checkWaitEnd(t *taskPlan, began *run.WaitStarted, end *run.WaitEnded, since, at time.Time, i int) error {
	took, w := at.Sub(since), t.wait
	switch {
	case began == nil:
		return errors.New("it ends before it has started")
	case (w.timeout > 0) == began.Deadline.IsZero() || w.timeout > 0 && began.Deadline.Sub(since).Abs() > w.timeout+time.Second:
		return fmt.Errorf("its deadline is %s after its start", began.Deadline.Sub(since))
	case end.State == run.Canceled:
		if i < s.stopped(t) {
			return errors.New("it is canceled, and nobody asked for it")
		}
	case end.State == run.Failed && end.Failure.Code == run.CodeTimeout:
		if w.timeout == 0 || took < w.timeout || w.kind == flows.WaitDuration && w.takes < w.timeout {
			return fmt.Errorf("its time was up after %s", took)
		}
	case end.State == run.Failed && end.Failure.Code == run.CodeRefused && w.kind == flows.WaitApproval:
	case end.State == run.Succeeded && w.kind == flows.WaitDuration:
		if took < w.takes || end.Payload != nil || w.timeout > 0 && w.timeout < w.takes {
			return fmt.Errorf("it has ended after %s with %s", took, end.Payload)
		}
	case end.State == run.Succeeded:
		if end.Payload == nil {
			return errors.New("it has ended by itself")
		}
	default:
		return fmt.Errorf("it is %s, %v", end.State, end.Failure)
	}
	return nil
}

// signal ends a wait of a run, or tries to.
func (c *client) signal() {
	e := c.present()
	if e == nil || len(c.own) == 0 {
		return
	}
	id, wait := pick(c.rng, c.own...), fmt.Sprint(flows.PartMain, 1+c.rng.IntN(6))
	for _, own := range slices.Backward(c.own) {
		if open := waitsOf(e, own); len(open) > 0 {
			id, wait = own, pick(c.rng, open...)
			break
		}
	}
	c.seq++
	payload := fmt.Sprintf("%q", fmt.Sprint(c.name, " ", c.seq))
	err := e.Signal(context.Background(), id, wait, json.RawMessage(payload))
	if errors.Is(err, ErrWaitKind) {
		a := run.Approval{Approved: !chance(c.rng, 4), By: payload}
		text, _ := a.MarshalJSON()
		payload = string(text)
		err = e.Approve(context.Background(), id, wait, a)
	}
	for _, fine := range []error{ErrUnknownWait, ErrNotWaiting, ErrWaitEnded, ErrWaitKind, ErrFinished, ErrStopped} {
		if errors.Is(err, fine) {
			return
		}
	}
	if err != nil {
		c.t.Errorf("a signal is answered with %v", err)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended[id] == nil {
		c.ended[id] = map[string]string{}
	}
	if first := c.ended[id][wait]; first != "" {
		c.t.Errorf("two have ended wait %s of run %s: %s and %s", wait, id, first, payload)
	}
	c.ended[id][wait] = payload
}

// waitsOf are the waits of a run that go on.
func waitsOf(e *Engine, id run.ID) (names []string) {
	record, err := e.Get(context.Background(), id)
	if err != nil {
		return nil
	}
	for _, t := range record.Tasks {
		if name, wait := strings.CutPrefix(t.Task, flows.WaitPrefix); wait && t.State == run.Running {
			names = append(names, name)
		}
	}
	return names
}

// judgeWaits compares what those who ended waits were told with what was recorded.
func (w *world) judgeWaits(stories map[run.ID]*story) {
	for id, all := range w.ended {
		for wait, payload := range all {
			s := stories[id]
			if s == nil {
				w.t.Errorf("a wait of run %s was ended, and the run is not recorded", id)
				continue
			}
			if got := s.task(flows.WaitPrefix + wait); got == nil || string(got.Output) != payload {
				w.t.Errorf("wait %s of run %s was ended with %s, and is recorded as %+v", wait, id, payload, got)
			}
		}
	}
}

// waitsAgree compares the waits that the loop keeps with those that are recorded.
func (o *openRun) waitsAgree() error {
	recorded := 0
	for _, t := range o.run.Tasks {
		if !t.Waits() {
			continue
		}
		recorded++
		if w := o.waits[t.TaskRef]; w == nil || w.state() != t {
			return fmt.Errorf("wait %s of run %s is recorded, and the loop has %+v", t.Task, o.run.ID, w)
		}
	}
	if recorded != len(o.waits) {
		return fmt.Errorf("%d waits of run %s are recorded, and the loop has %d", recorded, o.run.ID, len(o.waits))
	}
	return nil
}
