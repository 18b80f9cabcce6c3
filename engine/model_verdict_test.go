package engine

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
)

// story is what the journal holds of one run.
type story struct {
	id     run.ID
	events []run.Event
	run    *run.Run // at the end
	blobs  *vault

	submitted *run.Submitted
	canceled  int // number of the event that asked for the run's end; the number of events when none did
}

func newStory(id run.ID, events []run.Event, blobs *vault) *story {
	s := &story{id: id, events: events, blobs: blobs, canceled: len(events)}
	shard := run.NewShard()
	for i, e := range events {
		if _, err := shard.Apply(e); err != nil {
			panic(err) // the ledger has applied it before
		}
		switch d := e.Data.(type) {
		case *run.Submitted:
			s.submitted = d
		case *run.CancelRequested:
			s.canceled = i
		}
	}
	s.run = shard.Runs[id]
	return s
}

func (s *story) String() string {
	var b strings.Builder
	for i, e := range s.events {
		data, err := json.Marshal(e.Data)
		if err != nil {
			data = fmt.Append(nil, err)
		}
		fmt.Fprintf(&b, "%3d %s %-20s %.300s\n", i, e.At.Format("15:04:05.000000000"), e.Data.Kind(), data)
	}
	return b.String()
}

// check compares the story with what the language says, written down here a
// second time and naively: what becomes of each task follows from the ends of the
// tasks upstream and from what its guest does.
func (s *story) check(f *flowPlan, old *run.Run) error {
	switch {
	case !s.run.State.Done():
		return fmt.Errorf("it is %s", s.run.State)
	case s.run.Flow != f.name:
		return fmt.Errorf("it is of flow %s", s.run.Flow)
	}
	if s.run.StartedAt.IsZero() {
		return s.neverStarted()
	}
	for _, t := range f.tasks {
		if err := s.checkTask(t, f.tasks, old); err != nil {
			return fmt.Errorf("task %s: %w", t.name, err)
		}
	}
	return s.checkEnd(f, old)
}

func (s *story) neverStarted() error {
	if s.run.State != run.Canceled || s.run.Cancel == nil {
		return fmt.Errorf("it is %s and never started", s.run.State)
	}
	for _, t := range s.run.Tasks {
		if !t.State.Done() || t.Attempts > 0 {
			return fmt.Errorf("task %s of it is %s after %d attempts, and it never started", t.Task, t.State, t.Attempts)
		}
	}
	return nil
}

// wanted is what the language says of a task all of whose upstream tasks are done.
type wanted struct {
	runs    bool
	state   run.State // when it does not run
	code    string    // of the failure; empty for none
	because string
}

func (s *story) wanted(t *taskPlan, graph []*taskPlan) wanted {
	up := t.upstream()
	bad, skipped := false, 0
	for _, n := range up {
		switch u := s.task(graph[n].name); {
		case u.State == run.Skipped && u.Failure == nil:
			skipped++
		case u.State != run.Succeeded:
			bad = true
		}
	}
	switch {
	case t.runOn == flows.RunOnSuccess && bad:
		return wanted{state: run.Skipped, code: run.CodeUpstream, because: "an upstream task did not succeed"}
	case t.runOn == flows.RunOnSuccess && len(up) > 0 && skipped == len(up):
		return wanted{state: run.Skipped, because: "all upstream tasks were skipped"}
	case t.runOn == flows.RunOnFailure && !bad:
		return wanted{state: run.Skipped, because: "no upstream task failed"}
	case t.when == whenNever,
		t.when == whenPayload && s.payload().N == 0,
		t.when == whenState && s.task(graph[t.after[0]].name).State != run.Succeeded:
		return wanted{state: run.Skipped, because: "of its condition"}
	case t.input == inputBroken:
		return wanted{state: run.Failed, code: run.CodeExpression, because: "of its input"}
	}
	return wanted{runs: true}
}

// payload is what the runs of the model are given.
type payload struct {
	N   int    `json:"n"`
	K   string `json:"k"`
	Tag string `json:"tag"`
	Pad string `json:"pad,omitempty"`
}

func (s *story) payload() (p payload) {
	if err := json.Unmarshal(s.blobs.whole(s.submitted.Trigger.Payload), &p); err != nil {
		panic(err)
	}
	return p
}

func (s *story) task(name string) *run.TaskRun { return s.run.Task(run.TaskRef{Task: name}) }

func (s *story) checkTask(t *taskPlan, graph []*taskPlan, old *run.Run) error {
	got := s.task(t.name)
	if got == nil || !got.State.Done() {
		return fmt.Errorf("it has no end: %+v", got)
	}
	if got.Reused {
		if old != nil && !s.settled(t, graph, old) {
			return fmt.Errorf("it is reused, and something upstream is run again")
		}
		return s.checkReused(got, old)
	}
	if old != nil && s.reuses() && s.reusable(t, graph, old) {
		return fmt.Errorf("it is %s and not reused", got.State)
	}
	if got.State == run.Canceled && got.Attempts == 0 {
		if s.stopped(t) < s.endOf(t.name) {
			return nil
		}
		return fmt.Errorf("it is canceled, and nobody asked for it")
	}
	want := s.wanted(t, graph)
	if want.runs && t.wait != nil {
		return s.checkWait(t)
	}
	if want.runs {
		return s.checkAttempts(t, graph)
	}
	code := ""
	if got.Failure != nil {
		code = got.Failure.Code
	}
	if got.State != want.state || code != want.code || got.Attempts > 0 {
		return fmt.Errorf("it is %s (%q) after %d attempts, want %s (%q) because %s", got.State, code, got.Attempts, want.state, want.code, want.because)
	}
	return nil
}

// reuses reports whether the run takes over what it can.
func (s *story) reuses() bool {
	return slices.ContainsFunc(s.events, func(e run.Event) bool { return e.Data.Kind() == run.KindTaskReused })
}

// reusable reports whether a run that continues an old one takes over a task: one
// that succeeded, downstream of nothing that is run again.
func (s *story) reusable(t *taskPlan, graph []*taskPlan, old *run.Run) bool {
	before := old.Task(run.TaskRef{Task: t.name})
	return before != nil && before.State == run.Succeeded && s.settled(t, graph, old)
}

func (s *story) settled(t *taskPlan, graph []*taskPlan, old *run.Run) bool {
	for _, n := range t.upstream() {
		before := old.Task(run.TaskRef{Task: graph[n].name})
		kept := before != nil && (before.State == run.Succeeded || before.State == run.Skipped && before.Failure == nil)
		if !kept || !s.settled(graph[n], graph, old) {
			return false
		}
	}
	return true
}

func (s *story) checkReused(got *run.TaskRun, old *run.Run) error {
	if old == nil {
		return fmt.Errorf("it is reused in a run that continues none")
	}
	before := old.Task(got.TaskRef)
	if before == nil || before.State != run.Succeeded || !reflect.DeepEqual(before.Output, got.Output) {
		return fmt.Errorf("its output is reused, and in the run before it was %+v", before)
	}
	if got.State != run.Succeeded || got.Attempts > 0 {
		return fmt.Errorf("it is reused and %s after %d attempts", got.State, got.Attempts)
	}
	return nil
}

// stopped is the number of the event that stopped a task or its run. Hooks go on
// when the run's time is up, and finally in any case.
func (s *story) stopped(t *taskPlan) int {
	stop := s.canceled
	timedOut := s.run.Cancel != nil && s.run.Cancel.Outcome == run.OutcomeTimedOut
	if t.part == flows.PartFinally || t.part != flows.PartMain && timedOut {
		stop = len(s.events)
	}
	for i, e := range s.events[:stop] {
		if d, ok := e.Data.(*run.TaskCancelRequested); ok && d.Task == t.name {
			return i
		}
	}
	return stop
}

// endOf is the number of the event with which a task ended.
func (s *story) endOf(name string) int {
	for i, e := range s.events {
		switch d := e.Data.(type) {
		case *run.TaskEnded:
			if d.Task == name {
				return i
			}
		case *run.AttemptFinished:
			if d.Task == name && d.RetryAt.IsZero() {
				return i
			}
		case *run.WaitEnded:
			if d.Task == name {
				return i
			}
		}
	}
	return len(s.events)
}

// checkAttempts follows the attempts of a task that runs.
func (s *story) checkAttempts(t *taskPlan, graph []*taskPlan) error {
	stop := s.stopped(t)
	lost, made := 0, 0
	var started time.Time
	for i, e := range s.events {
		switch d := e.Data.(type) {
		case *run.AttemptStarted:
			if d.Task != t.name {
				continue
			}
			made++
			started = e.At
			if i > stop {
				return fmt.Errorf("attempt %d starts after it was stopped", d.Attempt)
			}
			if made == 1 {
				if err := s.checkInput(t, graph, d); err != nil {
					return err
				}
			}
		case *run.AttemptFinished:
			if d.Task != t.name {
				continue
			}
			if d.Outcome == run.OutcomeLost {
				lost++
			}
			late := e.At.Sub(started) > min(t.guest.takes, t.timeout) // the loop was held up, and the deadline with it
			if err := t.checkEnd(d, lost, e.At, i > stop, late); err != nil {
				return fmt.Errorf("attempt %d: %w", d.Attempt, err)
			}
		}
	}
	if made == 0 {
		return fmt.Errorf("it is %s without an attempt", s.task(t.name).State)
	}
	return nil
}

func (s *story) checkInput(t *taskPlan, graph []*taskPlan, d *run.AttemptStarted) error {
	want := []byte("null")
	outputs := make([]json.RawMessage, len(t.inputs))
	for i, n := range t.inputs {
		outputs[i] = json.RawMessage("null")
		if got := s.task(graph[n].name); got.State == run.Succeeded && got.Output != nil {
			outputs[i] = s.blobs.whole(s.task(graph[n].name).Output)
		}
	}
	switch t.input {
	case inputWhole:
		want = outputs[0]
	case inputList:
		want, _ = json.Marshal(outputs)
	}
	if got := s.blobs.whole(d.Input); string(got) != string(want) {
		return fmt.Errorf("its input is %.100s, want %.100s", got, want)
	}
	return nil
}

// checkEnd checks how an attempt ended and whether another one follows.
func (t *taskPlan) checkEnd(d *run.AttemptFinished, lost int, at time.Time, stopped, late bool) error {
	outcome, broken := d.Outcome, false
	if t.again == againBroken && d.Failure != nil && d.Failure.Code == run.CodeExpression {
		outcome, broken = run.OutcomeTimedOut, true // the condition took the failure's place
		if !t.expects(d.Attempt, outcome, late) {
			outcome = t.guest.outcome
		}
	}
	interrupted := stopped && (outcome == run.OutcomeCanceled || outcome == run.OutcomeTimedOut)
	if !t.expects(d.Attempt, outcome, late) && outcome != run.OutcomeLost && !interrupted {
		return fmt.Errorf("it is %s", outcome)
	}
	again := outcome != run.OutcomeSucceeded && !broken && !stopped && t.attemptedAgain(outcome, d.Attempt, lost)
	if again == d.RetryAt.IsZero() {
		return fmt.Errorf("it is %s after %d lost ones, and the next one is due at %v, want another one: %t", outcome, lost, d.RetryAt, again)
	}
	if wait := t.delay(outcome, d.Attempt-lost); again && !d.RetryAt.Equal(at.Add(wait)) {
		return fmt.Errorf("the next one is due after %s, want %s", d.RetryAt.Sub(at), wait)
	}
	return nil
}

// attemptedAgain tells whether another attempt follows one that did not go well.
func (t *taskPlan) attemptedAgain(o run.Outcome, attempt, lost int) bool {
	if o == run.OutcomeLost {
		return lost < 5
	}
	if o == run.OutcomeCanceled || attempt-lost >= t.retry.Attempts {
		return false
	}
	switch t.again {
	case againEarly:
		return attempt < 3
	case againFailed:
		return o == run.OutcomeFailed
	case againBroken:
		return false
	}
	return o != run.OutcomeFailed || t.guest.again
}

func (t *taskPlan) delay(o run.Outcome, ended int) time.Duration {
	if o == run.OutcomeLost {
		return 0
	}
	delay := t.retry.Delay
	for range ended - 1 {
		if t.retry.Backoff == run.Exponential {
			delay *= 2
		}
	}
	return min(delay, t.retry.Max)
}

// checkEnd checks how the run ended, and what its hooks did.
func (s *story) checkEnd(f *flowPlan, old *run.Run) error {
	first, mainDone := s.firstBad(f.tasks)
	canceled := s.run.Cancel != nil && s.run.Cancel.Outcome == run.OutcomeCanceled
	bad := canceled || s.run.Cancel != nil || first != nil || f.broken
	endsCanceled := canceled || first != nil && s.run.Cancel == nil && first.Failure.Outcome == run.OutcomeCanceled
	if s.run.Cancel != nil && !canceled && s.canceled > mainDone {
		return fmt.Errorf("its time was up after its main tasks had ended")
	}
	// A cancellation that came after the main tasks found them all done: whether
	// hooks had begun by then follows from what they were when it came.
	late := canceled && s.canceled > mainDone
	mainBad := first != nil || f.broken || s.run.Cancel != nil && !late
	mainCanceled := !late && endsCanceled || late && first != nil && first.Failure.Outcome == run.OutcomeCanceled
	wanted := map[flows.Part]bool{
		flows.PartOnFailure: mainBad && !mainCanceled,
		flows.PartOnSuccess: !mainBad,
		flows.PartFinally:   true,
	}
	for _, part := range hookParts {
		for _, h := range f.hooks[part] {
			if err := s.checkHook(h, f.hooks[part], wanted[part], late && part != flows.PartFinally); err != nil {
				return fmt.Errorf("%s: %w", h.name, err)
			}
		}
		// What fails there decides unless something has before.
		if failed, _ := s.firstBad(f.hooks[part]); failed != nil && wanted[part] && part != flows.PartOnFailure && !bad {
			first, bad = failed, true
			endsCanceled = failed.Failure.Outcome == run.OutcomeCanceled
		}
	}
	want := run.Succeeded
	switch {
	case endsCanceled:
		want = run.Canceled
	case bad:
		want = run.Failed
	}
	if s.run.State != want || want == run.Succeeded != (s.run.Failure == nil) {
		return fmt.Errorf("it is %s (%v), want %s", s.run.State, s.run.Failure, want)
	}
	if first != nil && s.run.Cancel == nil && s.run.Failure.Task != first.Task {
		return fmt.Errorf("its failure is that of %s, want %s", s.run.Failure.Task, first.Task)
	}
	return s.checkOutput(f)
}

// firstBad is the first of the tasks that did not succeed, nil when all went well,
// and the number of the event with which the last of all ended.
func (s *story) firstBad(tasks []*taskPlan) (first *run.TaskRun, done int) {
	for _, t := range tasks {
		got := s.task(t.name)
		if got == nil {
			continue
		}
		if (got.State == run.Failed || got.State == run.Canceled) && (first == nil || got.FinishedAt.Before(first.FinishedAt)) {
			first = got
		}
		if !got.Reused {
			done = max(done, s.endOf(t.name))
		}
	}
	return first, done
}

// checkHook checks a task after the main ones. One that a cancellation met on its
// way was stopped where it stood.
func (s *story) checkHook(h *taskPlan, graph []*taskPlan, wanted, met bool) error {
	got := s.task(h.name)
	switch {
	case wanted && (!met || got != nil):
		return s.checkTask(h, graph, nil)
	case wanted:
		return nil
	case got != nil && (got.Attempts > 0 && s.canceled == len(s.events) || !got.State.Done() || got.State == run.Succeeded && s.canceled == len(s.events)):
		return fmt.Errorf("it is %s after %d attempts, and nothing asked for it", got.State, got.Attempts)
	}
	return nil
}

func (s *story) checkOutput(f *flowPlan) error {
	if s.run.State != run.Succeeded {
		if s.run.Output != nil {
			return fmt.Errorf("it is %s and has an output", s.run.State)
		}
		return nil
	}
	last := map[string]any{}
	for i, t := range f.tasks {
		var output any
		if got := s.task(t.name); got.State == run.Succeeded {
			output = t.name
		}
		if t.wait == nil && !f.followed(i) {
			last[t.name] = output
		}
	}
	got := map[string]any{}
	if err := json.Unmarshal(s.blobs.whole(s.run.Output), &got); err != nil || !reflect.DeepEqual(got, last) {
		return fmt.Errorf("its output is %.100s (%v), want %v", s.run.Output, err, last)
	}
	return nil
}
