package engine

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
)

// waiting is an open wait with its timers. It takes no worker.
type waiting struct {
	task     task
	due      countdown // nothing for a wait that does not end by itself
	deadline countdown
}

// shift moves the timers of elapsed time. An instant stays where it is.
func (w *waiting) shift(shift func(*countdown)) {
	shift(&w.deadline)
	if w.task.spec.Wait.For == flows.WaitDuration {
		shift(&w.due)
	}
}

// beginWait starts a wait: its condition is evaluated now, once.
func (e *executor) beginWait(t task) {
	now := e.clock.now()
	await := func(s *flows.Scope) (flows.Awaited, *run.Failure) { return t.spec.Await(s, now) }
	evaluateTask(e, t, await, func(awaited flows.Awaited, failure *run.Failure) {
		if failure != nil {
			e.end(t, run.Failed, failure)
			return
		}
		started := &run.WaitStarted{TaskRef: t.ref(), Subject: awaited.Subject, Approval: awaited.Approval, Due: awaited.Due}
		begins := e.clock.now()
		if t.spec.Wait.For == flows.WaitDuration {
			started.Due = started.Due.Add(begins.Sub(now))
		}
		if limit := t.spec.Wait.Timeout; limit > 0 {
			started.Deadline = begins.Add(limit)
		}
		if e.commits.record(t.event(started)) == nil {
			e.keepWaiting(t)
		}
	}, func() { e.decide(t) })
}

// keepWaiting arms the timers of a wait that has started, possibly before a restart. A
// wait that should have ended by now ends at once.
func (e *executor) keepWaiting(t task) {
	state := t.state()
	if why := t.stopped(); why != nil {
		e.endWait(t, &run.WaitEnded{State: run.Canceled, Failure: why})
		return
	}
	now := e.clock.now()
	timeout := passed(state.Deadline, now)
	switch {
	case passed(state.Due, now) && !(timeout && state.Deadline.Before(state.Due)):
		e.endWait(t, &run.WaitEnded{State: run.Succeeded})
		return
	case timeout:
		e.endWait(t, t.tooLong())
		return
	}
	w := &waiting{task: t}
	if t.waits == nil {
		t.openRun.waits = map[run.TaskRef]*waiting{}
	}
	t.waits[t.ref()] = w
	if !state.Due.IsZero() {
		e.clock.countDown(&w.due, state.Due, func() {
			t.whenIdle(func() { e.waitOver(w, &run.WaitEnded{State: run.Succeeded}) })
		})
	}
	if !state.Deadline.IsZero() {
		e.clock.countDown(&w.deadline, state.Deadline, func() {
			t.whenIdle(func() { e.waitOver(w, t.tooLong()) })
		})
	}
	if state.Subject != "" {
		e.messages.open(w.opened())
	}
}

func passed(at, now time.Time) bool { return !at.IsZero() && !at.After(now) }

// tooLong is the end of a wait after its timeout.
func (t task) tooLong() *run.WaitEnded {
	return &run.WaitEnded{State: run.Failed, Failure: &run.Failure{
		Outcome: run.OutcomeTimedOut, Code: run.CodeTimeout,
		Message: fmt.Sprintf("the wait took longer than its timeout of %s", t.spec.Wait.Timeout),
	}}
}

// opened describes the wait for those who read messages.
func (w *waiting) opened() run.OpenWait {
	state := w.task.state()
	return run.OpenWait{Run: w.task.run.ID, Flow: w.task.run.Flow, Wait: waitName(w.task.spec.Name), Subject: state.Subject, Since: state.StartedAt}
}

// waitOver ends a wait and advances its run, unless the wait has ended already.
func (e *executor) waitOver(w *waiting, end *run.WaitEnded) error {
	if w.task.waits[w.task.ref()] != w {
		return nil
	}
	if err := e.endWait(w.task, end); err != nil {
		return err
	}
	e.advance(w.task.openRun)
	return nil
}

// endWait records the end of a wait. With an error, nothing has happened.
func (e *executor) endWait(t task, end *run.WaitEnded) error {
	end.TaskRef, end.Failure = t.ref(), t.locate(end.Failure)
	if err := e.commits.record(t.event(end)); err != nil {
		return err
	}
	if w := t.waits[t.ref()]; w != nil {
		delete(t.waits, t.ref())
		e.clock.stopCountdown(&w.due)
		e.clock.stopCountdown(&w.deadline)
		e.messages.end(w.opened())
	}
	if e.log.Enabled(e.ctx, slog.LevelDebug) {
		e.log.Debug("wait "+string(end.State), "run", t.run.ID, "flow", t.run.Flow, "wait", waitName(t.spec.Name), failureAttr(end.Failure))
	}
	e.settled(t)
	return nil
}

// waitName is the name of a wait in its flow file.
func waitName(task string) string { return strings.TrimPrefix(task, flows.WaitPrefix) }

// taskLabel names a task, a wait or a group in messages.
func taskLabel(task string) string {
	if strings.HasPrefix(task, flows.WaitPrefix) {
		return "wait " + waitName(task)
	}
	if group, ok := strings.CutPrefix(task, "group."); ok {
		return "group " + group
	}
	return "task " + task
}

// messageWaits collects the waits for messages that begin and end, for one reader. The
// loop never waits for the reader, and without one it holds no more than the open
// waits.
type messageWaits struct {
	mu      sync.Mutex
	begun   map[waitKey]run.OpenWait // not returned yet
	ended   map[waitKey]run.OpenWait // of those that were returned
	changed chan struct{}            // one place
}

type waitKey struct {
	run  run.ID
	wait string
}

func keyOf(w run.OpenWait) waitKey { return waitKey{w.Run, w.Wait} }

func (m *messageWaits) open(w run.OpenWait) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.begun[keyOf(w)] = w
	m.notify()
}

func (m *messageWaits) end(w run.OpenWait) {
	if w.Subject == "" {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, untold := m.begun[keyOf(w)]; untold {
		delete(m.begun, keyOf(w))
		return
	}
	m.ended[keyOf(w)] = w
	m.notify()
}

func (m *messageWaits) notify() {
	select {
	case m.changed <- struct{}{}:
	default:
	}
}

func (m *messageWaits) take() (begun, ended []run.OpenWait) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, w := range m.begun {
		begun = append(begun, w)
	}
	for _, w := range m.ended {
		ended = append(ended, w)
	}
	clear(m.begun)
	clear(m.ended)
	return begun, ended
}

// MessageWaits returns the waits for messages that have begun, and those that have
// ended, since the last call. It has one caller: it returns each wait once.
func (e *Engine) MessageWaits() (begun, ended []run.OpenWait) { return e.exec.messages.take() }

// MessageWaitsChanged receives a value whenever MessageWaits would return more.
func (e *Engine) MessageWaitsChanged() <-chan struct{} { return e.exec.messages.changed }
