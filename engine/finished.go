package engine

import (
	"cmp"
	"context"
	"log/slog"
	"slices"

	"github.com/flowhost/flowhost/run"
)

// manyTasks is how many task runs make a run large.
const manyTasks = 1000

// finish ends a run whose tasks are all done.
func (e *executor) finish(o *openRun, failure *run.Failure) {
	if len(o.run.Tasks) > manyTasks {
		e.watchdog.Doing("finishing a run", string(o.run.ID))
	}
	if err := fits(o.output); err != nil && failure == nil {
		o.output, failure = nil, outputFailure(err)
	}
	end := &run.Finished{State: run.Succeeded, Output: o.output, Failure: failure}
	if end.Failure != nil {
		end.State, end.Output = run.Failed, nil
	}
	if end.Failure != nil && end.Failure.Outcome == run.OutcomeCanceled {
		end.State = run.Canceled
	}
	e.endUnreached(o)
	if len(o.run.Tasks) <= manyTasks {
		e.recordFinished(o, end)
	} else {
		prepareRecord(e, o, func() { e.recordFinished(o, end) })
	}
}

// prepareRecord builds the record of a large run before the run ends, beside the loop.
func prepareRecord(e *executor, o *openRun, then func()) {
	build := func() { o.completion.record = o.newRecord(taskNames(o.flow)) }
	if e.evaluations.inline {
		build()
		then()
		return
	}
	e.evaluations.evaluateBeside(o, build, then, nil)
}

// recordFinished records the end of a run, and closes it.
func (e *executor) recordFinished(o *openRun, end *run.Finished) {
	if o.run.Parent == nil && len(e.chains.followers(o.run)) == 0 { // mostly
		after := new(afterFinish)
		e.endRecorded(o, after, e.commits.record(o.event(end)))
		return
	}
	e.endRun(o.run, end, func(after *afterFinish, err error) { e.endRecorded(o, after, err) })
}

// endRecorded closes a run, or lets it fail when its output does not fit into the journal.
func (e *executor) endRecorded(o *openRun, after *afterFinish, err error) {
	switch {
	case err == nil:
		e.closeFinished(o, after)
	case e.fault == nil:
		o.output = nil
		e.recordFinished(o, &run.Finished{State: run.Failed, Failure: outputFailure(err)})
	}
}

// closeFinished closes a run whose end is recorded, and continues what waited for it.
func (e *executor) closeFinished(o *openRun, after *afterFinish) {
	o.completion.record = e.recordOf(o.run)
	e.close(o)
	e.continueAfter(after)
	e.evaluations.settleRun(o)
}

// endUnreached ends the tasks of a hook that were canceled before the hook had a
// reason to run.
func (e *executor) endUnreached(o *openRun) {
	for _, t := range o.run.Tasks {
		if !t.State.Done() {
			e.commits.record(o.event(&run.TaskEnded{TaskRef: t.TaskRef, State: run.Canceled, Failure: t.Cancel}))
		}
	}
}

func outputFailure(err error) *run.Failure {
	return &run.Failure{Outcome: run.OutcomeRejected, Code: run.CodeOutputSize, Message: "the output of the run: " + err.Error()}
}

// parentAttempt is an attempt of a task that ends with the run that it was.
type parentAttempt struct {
	task task
	end  *run.AttemptFinished
}

// afterFinish is what continues when a run has ended.
type afterFinish struct {
	parent *parentAttempt // nil for most
	next   []chainedRun
}

// endRun records the end of a run, together with the end of the attempt that it was and
// the runs that it starts. What these depend on is evaluated first; meanwhile the run is
// busy.
func (e *executor) endRun(r *run.Run, end *run.Finished, then func(*afterFinish, error)) {
	e.chains.admit(r, end, func(chained []*chainedAdmission) {
		e.endParentAttempt(r, end, func(parent *parentAttempt) {
			at := e.clock.now()
			events := []run.Event{{Run: r.ID, At: at, Data: end}}
			after := &afterFinish{next: e.chains.runs(r, chained), parent: parent}
			if parent != nil {
				events = append(events, parent.task.event(parent.end))
			}
			for _, next := range after.next {
				events = append(events, run.Event{Run: next.id, At: at, Data: next.submitted})
			}
			then(after, e.commits.record(events...))
		})
	})
}

// finishing is the evaluation of a run that waits for the end of its parent's.
var finishing = new(evaluation)

// endParentAttempt gives the end of the attempt that a run was, nil for none, as soon as
// the run of that attempt is idle.
func (e *executor) endParentAttempt(r *run.Run, end *run.Finished, then func(*parentAttempt)) {
	above := e.open[cmp.Or(r.Parent, new(run.Parent)).Run]
	if above == nil {
		then(nil)
		return
	}
	o := e.open[r.ID]
	if o != nil {
		o.evaluating = finishing
	}
	ended := func(parent *parentAttempt) {
		if o != nil {
			o.evaluating = nil
		}
		then(parent)
	}
	above.whenIdle(func() {
		t, ok := e.children.parentTask(r)
		if !ok {
			ended(nil)
			return
		}
		e.endOf(t, e.children.resultOf(r, end), func(end *run.AttemptFinished) { ended(&parentAttempt{task: t, end: end}) })
	})
}

// continueAfter resumes whatever waited for the finished run.
func (e *executor) continueAfter(after *afterFinish) {
	e.chains.start(after.next)
	if from := after.parent; from != nil && e.fault == nil {
		e.attemptOver(from.task, from.end)
		e.advance(from.task.openRun)
	}
}

// close forgets a finished run except for its record, which waits for the journal.
func (e *executor) close(o *openRun) {
	if e.log.Enabled(e.ctx, slog.LevelInfo) {
		e.log.Info("run "+string(o.run.State), "run", o.run.ID, "flow", o.run.Flow,
			"took", o.run.FinishedAt.Sub(o.run.CreatedAt), failureAttr(o.run.Failure))
	}
	e.clock.stopCountdown(&o.deadline)
	e.clock.stopCountdown(&o.parentDeadline)
	e.finished.add(o.completion, e.commits.notifiedUpTo())
	end := o.completion
	durable := e.commits.onCommit
	if len(end.waiting) > 0 {
		durable = e.commits.afterCommit
	}
	durable(func() { end.settle(e.commits.revision) })
	delete(e.open, o.run.ID)
	e.shard.Forget(o.run.ID)
	e.runLimits.release(o)
	e.limits.release(o)
	e.schedules.noteClosed(o)
}

// recordOf gives the record of a finished run, its tasks in order of declaration
// where the flow is known. It is built once for all who need it.
func (e *executor) recordOf(r *run.Run) *run.Record {
	o := e.open[r.ID]
	if o == nil { // it finished before a restart
		var order []string
		if f, err := e.restore(e.ctx, r); err == nil {
			order = taskNames(f)
		}
		return recordUnder(e.commits.shard.Definitions[r.Definition], r, order)
	}
	if o.completion.record == nil {
		o.completion.record = o.newRecord(taskNames(o.flow))
	}
	o.completion.record.Conclude(r)
	return o.completion.record
}

// maxFinishedBytes bounds the records of finished runs that are kept so that a Wait
// after the end still finds its run. Older ones are in the history.
const maxFinishedBytes = 64 << 20

// completion is the end of a run for those who wait for it.
type completion struct {
	record   *run.Record // once the run is finished; not given out before it is durable
	durable  bool
	revision uint64               // of the commit with the end, once that is durable
	waiting  []chan<- *run.Record // one place each
}

// wait sends the record to answer once it is durable.
func (end *completion) wait(answer chan<- *run.Record) {
	if end.durable {
		answer <- end.record
		return
	}
	end.waiting = append(end.waiting, answer)
}

// leave removes an answer that is no longer awaited.
func (end *completion) leave(answer chan<- *run.Record) {
	end.waiting = slices.DeleteFunc(end.waiting, func(other chan<- *run.Record) bool { return other == answer })
}

func (end *completion) settle(revision uint64) {
	end.durable, end.revision = true, revision
	for _, answer := range end.waiting {
		answer <- end.record
	}
	end.waiting = nil
}

// finishedRuns keeps the latest completions, up to a number of bytes, and those that
// the history has not received yet: they can be found nowhere else.
type finishedRuns struct {
	limit       int
	completions map[run.ID]*completion
	order       []run.ID
	bytes       int
}

func (f *finishedRuns) get(id run.ID) *completion { return f.completions[id] }

// add adds a completion, and drops the oldest ones up to a revision that the history
// has.
func (f *finishedRuns) add(end *completion, told uint64) {
	if f.completions == nil {
		f.completions = map[run.ID]*completion{}
	}
	f.completions[end.record.Run] = end
	f.order = append(f.order, end.record.Run)
	f.bytes += recordBytes(end.record)
	for f.bytes > f.limit && len(f.order) > 1 {
		oldest := f.order[0]
		if older := f.completions[oldest]; !older.durable || older.revision > told {
			return
		}
		f.order = f.order[1:]
		f.bytes -= recordBytes(f.completions[oldest].record)
		delete(f.completions, oldest)
	}
}

// recordBytes estimates what a record holds on to.
func recordBytes(r *run.Record) int {
	const perRun, perTask = 512, 256
	n := perRun + len(r.Output) + len(r.Trigger.Payload)
	for _, p := range r.Params {
		n += len(p)
	}
	for _, t := range r.Tasks {
		n += perTask + len(t.Input) + len(t.Output)
	}
	return n
}

// Wait returns a run's record once it is finished and durable.
func (e *Engine) Wait(ctx context.Context, id run.ID) (*run.Record, error) {
	return e.wait(ctx, id, func() *completion {
		if o := e.exec.open[id]; o != nil {
			return o.completion
		}
		return e.exec.finished.get(id)
	})
}

// finishedRecord returns the record of a finished run.
func (e *Engine) finishedRecord(ctx context.Context, id run.ID) (*run.Record, error) {
	return e.wait(ctx, id, func() *completion { return e.exec.finished.get(id) })
}

// wait returns the record of the completion that find finds on the loop, or the record
// in the history.
func (e *Engine) wait(ctx context.Context, id run.ID, find func() *completion) (*run.Record, error) {
	answers := make(chan *run.Record, 1)
	var end *completion
	err := e.command(ctx, func() {
		if end = find(); end != nil {
			end.wait(answers)
			if end.record != nil && !end.durable {
				e.exec.commits.afterCommit(func() {})
			}
		}
	})
	switch {
	case err != nil:
		return nil, err
	case end == nil && e.exec.config.History == nil:
		return nil, run.ErrUnknown
	case end == nil:
		return e.exec.config.History.Get(ctx, id)
	}
	record, err := await(ctx, e, answers)
	if err != nil {
		e.cleanUp(func() { end.leave(answers) })
	}
	return record, err
}

// newRecord is the run's record of now, its tasks in the given order.
func (o *openRun) newRecord(order []string) *run.Record {
	var definition *run.Definition
	if o.flow != nil {
		definition = o.flow.Definition
	}
	return recordUnder(definition, o.run, order)
}

// recordUnder is the record of a run with the policy that its definition states.
func recordUnder(d *run.Definition, r *run.Run, order []string) *run.Record {
	record := r.Record(order)
	if d != nil {
		record.Policy = d.Policies[r.Flow]
	}
	return record
}
