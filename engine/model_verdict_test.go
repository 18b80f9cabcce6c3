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
	blobs  *checkedBlobs
	groups map[*groupPlan]end // what has become of them
	places []place            // of the events in the journal
	all    map[run.ID]*story
	plan   *flowPlan
	old    *story     // of the run that this one continues; nil for none
	how    *againPlan // nil for none

	submitted *run.Submitted
	canceled  int // number of the event that asked for the run's end; the number of events when none did
}

func newStory(id run.ID, events []run.Event, blobs *checkedBlobs) *story {
	s := &story{id: id, events: events, blobs: blobs, groups: map[*groupPlan]end{}, canceled: len(events)}
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
func (s *story) check(f *flowPlan) error {
	switch {
	case !s.run.State.Done():
		return fmt.Errorf("it is %s", s.run.State)
	case s.run.Flow != f.name:
		return fmt.Errorf("it is of flow %s", s.run.Flow)
	}
	if s.run.StartedAt.IsZero() {
		return s.neverStarted()
	}
	if err := s.checkPart(f.part(flows.PartMain)); err != nil {
		return err
	}
	return s.checkEnd(f)
}

func (s *story) neverStarted() error {
	if s.run.Cancel == nil || s.run.State != s.run.Cancel.Outcome.State() {
		return fmt.Errorf("it is %s and never started", s.run.State)
	}
	for _, t := range s.run.Tasks {
		if !t.State.Done() || t.Attempts > 0 {
			return fmt.Errorf("task %s of it is %s after %d attempts, and it never started", t.Task, t.State, t.Attempts)
		}
	}
	return nil
}

// checkPart compares each task of a part with what the language says of it.
func (s *story) checkPart(p *partPlan) error {
	for _, t := range p.tasks {
		if got := s.task(t.name); got == nil || !got.State.Done() {
			return fmt.Errorf("task %s has no end: %+v", t.name, got)
		}
	}
	for _, t := range p.tasks {
		if err := s.checkTask(t, p); err != nil {
			return fmt.Errorf("task %s: %w", t.name, err)
		}
	}
	return s.checkGroups(p)
}

// wanted is what the language says of a task, or of a group that begins, all of
// whose upstream is done.
type wanted struct {
	runs    bool
	state   run.State // when it does not run
	code    string    // of the failure; empty for none
	because string
}

func (s *story) wanted(t *taskPlan, p *partPlan) wanted {
	m := memberPlan{task: t}
	if t.group != nil {
		if turn := s.turn(p, m); !turn.runs {
			return turn
		}
	}
	if join := s.join(p, t.upstream(), s.before(p, m), t.runOn); !join.runs {
		return join
	}
	if when := s.when(p, t.when, t.after); !when.runs {
		return when
	}
	if t.input == inputBroken && t.each == nil {
		return wanted{state: run.Failed, code: run.CodeExpression, because: "of its input"}
	}
	return wanted{runs: true}
}

// payload is what the runs of the model are given.
type payload struct {
	N     int             `json:"n"`
	K     string          `json:"k"`
	Tag   string          `json:"tag"`
	Items json.RawMessage `json:"items"`
	Pad   string          `json:"pad,omitempty"`
}

func (s *story) payload() (p payload) {
	if s.submitted.Trigger.Kind == run.TriggerTask {
		return s.given()
	}
	if err := json.Unmarshal(s.blobs.whole(s.submitted.Trigger.Payload), &p); err != nil {
		panic(err)
	}
	return p
}

func (s *story) task(name string) *run.TaskRun { return s.run.Task(run.TaskRef{Task: name}) }

func (s *story) checkTask(t *taskPlan, p *partPlan) error {
	got := s.task(t.name)
	if err := s.checkTaken(t, p); err != nil {
		return err
	}
	switch {
	case got.Reused && got.Items == nil:
		return s.checkReused(t, p, got)
	case got.Reused && (s.tookAll(got) || s.wanted(t, p).runs && (got.State != run.Canceled || s.expandedAgain(t))):
		return s.checkFan(t, p)
	}
	if got.State == run.Canceled && !s.began(got) {
		if got.Failure.Code == run.CodeRace && s.raceOver(p, t) < s.endOf(t.ref()) {
			return nil
		}
		return s.checkStopped(t)
	}
	want := s.wanted(t, p)
	switch {
	case want.runs && t.each != nil:
		return s.checkFan(t, p)
	case want.runs && t.call != nil:
		return s.checkCalls(t, p, nil)
	case want.runs && t.wait != nil:
		return s.checkWait(t, p)
	case want.runs:
		return s.checkAttempts(t, p, nil)
	}
	code := ""
	if got.Failure != nil {
		code = got.Failure.Code
	}
	if got.State != want.state || code != want.code || s.began(got) || s.expandedAgain(t) {
		return fmt.Errorf("it is %s (%q) after %d attempts, want %s (%q) because %s", got.State, code, got.Attempts, want.state, want.code, want.because)
	}
	return nil
}

// checkStopped checks that somebody asked for the end of what never began.
func (s *story) checkStopped(t *taskPlan) error {
	if s.stopped(t) < s.endOf(t.ref()) {
		return nil
	}
	return fmt.Errorf("it is canceled, and nobody asked for it")
}

// stopped is the number of the event that stopped a task or its run. Hooks continue
// when the run's time is up, and finally in any case.
func (s *story) stopped(t *taskPlan) int {
	stop := s.canceled
	timedOut := s.run.Cancel != nil && s.run.Cancel.Outcome == run.OutcomeTimedOut
	if t.part == flows.PartFinally || t.part != flows.PartMain && timedOut {
		stop = len(s.events)
	}
	for i, e := range s.events[:stop] {
		if d, ok := e.Data.(*run.TaskCancelRequested); ok && (d.TaskRef == t.ref() || d.TaskRef == run.TaskRef{Task: t.name}) {
			return i
		}
	}
	return stop
}

// endOf is the number of the event with which a task ended.
func (s *story) endOf(ref run.TaskRef) int {
	for i, e := range s.events {
		switch d := e.Data.(type) {
		case *run.TaskEnded:
			if d.TaskRef == ref {
				return i
			}
		case *run.WaitEnded:
			if d.TaskRef == ref {
				return i
			}
		case *run.AttemptFinished:
			if d.TaskRef == ref && d.RetryAt.IsZero() {
				return i
			}
		}
	}
	return len(s.events)
}

// checkAttempts follows the attempts of a task that runs, or of an item. The item
// is what its guest may be given.
func (s *story) checkAttempts(t *taskPlan, p *partPlan, item any) error {
	stop := min(s.stopped(t), s.raceStop(p, t))
	lost, made := 0, 0
	var started time.Time
	for i, e := range s.events {
		switch d := e.Data.(type) {
		case *run.AttemptStarted:
			if d.TaskRef != t.ref() {
				continue
			}
			made++
			started = e.At
			if i > stop {
				return fmt.Errorf("attempt %d starts after it was stopped", d.Attempt)
			}
			if made == 1 {
				if err := s.checkInput(d, s.input(t, p, item)); err != nil {
					return err
				}
			}
		case *run.AttemptFinished:
			if d.TaskRef != t.ref() {
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
		return fmt.Errorf("it is %s without an attempt", s.run.Task(t.ref()).State)
	}
	return nil
}

func (s *story) checkInput(d *run.AttemptStarted, want any) error {
	var got any
	if err := json.Unmarshal(s.blobs.whole(d.Input), &got); err != nil || !reflect.DeepEqual(got, want) {
		return fmt.Errorf("its input is %.100v (%v), want %.100v", got, err, want)
	}
	return nil
}

// input is what the expression of a task gives, for an item if there is one.
func (s *story) input(t *taskPlan, p *partPlan, item any) any {
	outputs := make([]any, len(t.inputs))
	for i, ref := range t.inputs {
		outputs[i] = s.end(p, p.find(ref)).output
	}
	switch t.input {
	case inputWhole:
		return outputs[0]
	case inputList:
		return outputs
	case inputItem:
		return item
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
	again := outcome != run.OutcomeSucceeded && !broken && !stopped && t.attemptedAgain(outcome, d.Attempt, lost, t.guest.again || outcome != run.OutcomeFailed)
	if again == d.RetryAt.IsZero() {
		return fmt.Errorf("it is %s after %d lost ones, and the next one is due at %v, want another one: %t", outcome, lost, d.RetryAt, again)
	}
	if wait := t.delay(outcome, d.Attempt-lost); again && !d.RetryAt.Equal(at.Add(wait)) {
		return fmt.Errorf("the next one is due after %s, want %s", d.RetryAt.Sub(at), wait)
	}
	return nil
}

// attemptedAgain reports whether another attempt follows one that did not go well.
func (t *taskPlan) attemptedAgain(o run.Outcome, attempt, lost int, retryable bool) bool {
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
	return retryable
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
func (s *story) checkEnd(f *flowPlan) error {
	first, mainBad, mainDone := s.worst(f.part(flows.PartMain))
	canceled := s.run.Cancel != nil && s.run.Cancel.Outcome == run.OutcomeCanceled
	bad := canceled || s.run.Cancel != nil || mainBad || f.broken
	endsCanceled := canceled || mainBad && s.run.Cancel == nil && first.canceled(s.run.Failure)
	inTime := s.events[mainDone].At.Before(s.run.StartedAt.Add(f.timeout)) // otherwise both happened at one moment
	if s.run.Cancel != nil && !canceled && s.canceled > mainDone && inTime {
		return fmt.Errorf("its time was up after its main tasks had ended")
	}
	// A cancellation that came after the main tasks found them all done: whether
	// hooks had begun by then follows from what they were when it came.
	late := canceled && s.canceled > mainDone
	mainCanceled := !late && endsCanceled || late && mainBad && first.canceled(nil)
	onFailure := mainBad || f.broken || s.run.Cancel != nil && !late
	wanted := map[flows.Part]bool{
		flows.PartOnFailure: onFailure && !mainCanceled,
		flows.PartOnSuccess: !onFailure,
		flows.PartFinally:   true,
	}
	for _, part := range hookParts {
		p := f.part(part)
		if err := s.checkHook(p, wanted[part], late && part != flows.PartFinally); err != nil {
			return fmt.Errorf("%s: %w", part, err)
		}
		if !wanted[part] || part == flows.PartOnFailure || bad || !s.begun(p) {
			continue
		}
		// What fails there decides unless something has before.
		if failed, failing, _ := s.worst(p); failing {
			first, bad, mainBad = failed, true, true
			endsCanceled = failed.canceled(s.run.Failure)
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
	if mainBad && s.run.Cancel == nil && first.culprits[s.run.Failure.Task] == "" {
		return fmt.Errorf("its failure is that of %s, want one of %v", s.run.Failure.Task, first.culprits)
	}
	return s.checkOutput(f)
}

// worst is what failed first of the tasks and groups of a part, and the number of
// the event with which the last of all tasks ended.
func (s *story) worst(p *partPlan) (first end, bad bool, done int) {
	if !s.begun(p) {
		return end{}, false, 0
	}
	var all []end
	for _, m := range p.members {
		all = append(all, s.end(p, m))
		done = max(done, s.endsAt(m))
	}
	first, bad = firstOf(all)
	return first, bad, done
}

// begun reports whether something has happened to all tasks of a part.
func (s *story) begun(p *partPlan) bool {
	return !slices.ContainsFunc(p.tasks, func(t *taskPlan) bool { return s.task(t.name) == nil })
}

// checkHook checks the tasks after the main ones. Those that a cancellation met on
// its way were stopped where they stood.
func (s *story) checkHook(p *partPlan, wanted, met bool) error {
	if wanted && (!met || s.begun(p)) {
		return s.checkPart(p)
	}
	for _, t := range p.tasks {
		got, never := s.task(t.name), s.canceled == len(s.events)
		if !wanted && got != nil && (got.Attempts > 0 && never || !got.State.Done() || got.State == run.Succeeded && never) {
			return fmt.Errorf("task %s is %s after %d attempts, and nothing asked for it", t.name, got.State, got.Attempts)
		}
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
	p, last := f.part(flows.PartMain), map[string]any{}
	for _, m := range p.members {
		if !m.waits() && !p.followed(m) {
			last[m.name()] = s.end(p, m).output
		}
	}
	got := map[string]any{}
	if err := json.Unmarshal(s.blobs.whole(s.run.Output), &got); err != nil || !reflect.DeepEqual(got, last) {
		return fmt.Errorf("its output is %.100s (%v), want %v", s.run.Output, err, last)
	}
	return nil
}
