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
	takes   time.Duration // of a duration, and until when after the trigger
	timeout time.Duration // 0 for none
}

func randomWait(rng *rand.Rand) *waitPlan {
	w := &waitPlan{
		kind:    pick(rng, flows.WaitDuration, flows.WaitUntil, flows.WaitSignal, flows.WaitSubject, flows.WaitApproval),
		takes:   pick(rng, 0, time.Second, 10*time.Second, time.Minute),
		timeout: pick(rng, time.Second, 20*time.Second, 5*time.Minute),
	}
	if w.timed() && chance(rng, 2) {
		w.timeout = 0
	}
	return w
}

// timed reports whether the wait ends by itself.
func (w *waitPlan) timed() bool { return w.kind == flows.WaitDuration || w.kind == flows.WaitUntil }

// become makes a wait of a task: it is given nothing.
func (t *taskPlan) become(w *waitPlan) {
	t.wait, t.name = w, flows.WaitPrefix+t.name
	t.inputs, t.input, t.goesOn = nil, inputNone, false
}

func (t *taskPlan) waitHCL(b *strings.Builder) {
	w := t.wait
	value := map[flows.WaitFor]string{
		flows.WaitDuration: fmt.Sprintf("%q", w.takes), flows.WaitUntil: fmt.Sprintf("timeadd(trigger.time, %q)", w.takes),
		flows.WaitSignal: "true", flows.WaitSubject: `"a.${run.id}"`, flows.WaitApproval: `"run ${run.id}?"`,
	}[w.kind]
	fmt.Fprintf(b, "  wait %q {\n    run_on = %q\n    after = [%s]\n    %s = %s\n", waitName(t.name), t.runOn, strings.Join(t.after, ", "), w.kind, value)
	if w.timeout > 0 {
		fmt.Fprintf(b, "    timeout = %q\n", w.timeout)
	}
	t.when.hcl(b, t.after)
	b.WriteString("  }\n")
}

// outputWord is what the output of a task or a group is called, and what a wait has
// instead.
func outputWord(ref string) string {
	if strings.HasPrefix(ref, flows.WaitPrefix) {
		return ".payload"
	}
	return ".output"
}

func (m memberPlan) waits() bool { return m.task != nil && m.task.wait != nil }

// followed reports whether a task or a group comes after a member of the part, be it
// after waits.
func (p *partPlan) followed(up memberPlan) bool {
	return slices.ContainsFunc(p.all(), func(m memberPlan) bool {
		around, _ := m.within()
		return slices.Contains(m.upstream(), up.ref()) && (!m.waits() || around != nil || p.followed(m))
	})
}

// began reports whether a task has not only been decided about, but has run.
func (s *story) began(t *run.TaskRun) bool {
	return t.Attempts > 0 || !t.Reused && !t.StartedAt.IsZero()
}

// decoded is recorded JSON, nil when there is none.
func (s *story) decoded(text json.RawMessage) (value any) {
	if len(text) == 0 {
		return nil
	}
	if err := json.Unmarshal(s.blobs.whole(text), &value); err != nil {
		panic(err)
	}
	return value
}

// checkWait follows a wait that its flow lets run.
func (s *story) checkWait(t *taskPlan, p *partPlan) error {
	stop := min(s.stopped(t), s.raceStop(p, t))
	var began *run.WaitStarted
	var since time.Time
	for i, e := range s.events {
		switch d := e.Data.(type) {
		case *run.WaitStarted:
			if d.Task != t.name {
				continue
			}
			if began != nil || i > stop {
				return errors.New("it starts twice, or after it was stopped")
			}
			began, since = d, e.At
			if err := s.checkAwaited(t.wait, d, since); err != nil {
				return err
			}
		case *run.WaitEnded:
			if d.Task == t.name {
				return t.wait.checkEnd(began, d, e.At, i > stop)
			}
		}
	}
	return fmt.Errorf("it has not waited: it is %s", s.task(t.name).State)
}

// checkAwaited checks what a wait was recorded to wait for.
func (s *story) checkAwaited(w *waitPlan, d *run.WaitStarted, since time.Time) error {
	var want run.WaitStarted
	switch w.kind {
	case flows.WaitDuration:
		want.Due = since.Add(w.takes)
	case flows.WaitUntil: // texts of instants have whole seconds
		want.Due = s.submitted.Trigger.Time.Truncate(time.Second).Add(w.takes)
	case flows.WaitSubject:
		want.Subject = "a." + string(s.id)
	case flows.WaitApproval:
		want.Approval = "run " + string(s.id) + "?"
	}
	if w.timeout > 0 {
		want.Deadline = since.Add(w.timeout)
	}
	if !d.Due.Equal(want.Due) || !d.Deadline.Equal(want.Deadline) || d.Subject != want.Subject || d.Approval != want.Approval {
		return fmt.Errorf("since %s it waits for %+v, want %+v", since, d, want)
	}
	return nil
}

// checkEnd checks how a wait that has begun ends.
func (w *waitPlan) checkEnd(began *run.WaitStarted, end *run.WaitEnded, at time.Time, stopped bool) error {
	switch {
	case began == nil:
		return errors.New("it ends before it has started")
	case end.State == run.Canceled:
		if !stopped {
			return errors.New("it is canceled, and nobody asked for it")
		}
	case end.State == run.Failed && end.Failure.Code == run.CodeTimeout:
		if w.timeout == 0 || at.Before(began.Deadline) || w.timed() && !began.Deadline.Before(began.Due) {
			return fmt.Errorf("its time was up at %s", at)
		}
	case end.State == run.Failed && end.Failure.Code == run.CodeRefused && w.kind == flows.WaitApproval:
	case end.State == run.Succeeded && w.timed():
		if at.Before(began.Due) || end.Payload != nil || w.timeout > 0 && began.Deadline.Before(began.Due) {
			return fmt.Errorf("it has ended at %s with %s", at, end.Payload)
		}
	case end.State == run.Succeeded:
		if end.Payload == nil || stopped {
			return errors.New("it has ended by itself, or after it was stopped")
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
	id, wait := pick(c.rng, c.own...), fmt.Sprint(flows.PartMain, c.rng.IntN(6))
	for _, own := range slices.Backward(c.own) {
		if open := waitsOf(e, own); len(open) > 0 {
			at := pick(c.rng, open...)
			id, wait = at.Run, at.Wait
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

// waitsOf are the waits that are open of a run, and of those within it.
func waitsOf(e *Engine, id run.ID) (open []run.OpenWait) {
	record, err := e.Get(context.Background(), id)
	if err != nil {
		return nil
	}
	for _, t := range record.Tasks {
		if strings.HasPrefix(t.Task, flows.WaitPrefix) && t.State == run.Running {
			open = append(open, run.OpenWait{Run: id, Wait: waitName(t.Task)})
		}
		if t.Child != "" {
			open = append(open, waitsOf(e, t.Child)...)
		}
	}
	return open
}

// judgeWaits compares what those who ended waits were answered with what was recorded.
func (w *world) judgeWaits(stories map[run.ID]*story) {
	for id, all := range w.ended {
		for wait, payload := range all {
			s := stories[id]
			if s == nil {
				w.t.Errorf("a wait of run %s was ended, and the run is not recorded", id)
				continue
			}
			if got := s.task(flows.WaitPrefix + wait); got == nil || got.Reused || string(got.Output) != payload {
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
		if w := o.waits[t.TaskRef]; w == nil || w.task.state() != t {
			return fmt.Errorf("wait %s of run %s is recorded, and the loop has %+v", t.Task, o.run.ID, w)
		}
	}
	if recorded != len(o.waits) {
		return fmt.Errorf("%d waits of run %s are recorded, and the loop has %d", recorded, o.run.ID, len(o.waits))
	}
	return nil
}
