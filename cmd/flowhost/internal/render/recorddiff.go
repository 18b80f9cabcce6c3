package render

import (
	"context"
	"time"

	"github.com/flowhost/flowhost/run"
)

// RecordDiff shows a run of which only records are known: it feeds a progress with
// the events between one record and the next. It misses what started and ended in
// between.
type RecordDiff struct {
	Progress *Progress
	seen     map[run.TaskRef]run.TaskRecord // nil before the first record
	record   *run.Record
	waits    map[shownWait]bool // that were shown; nil for none
}

// Show shows the events between the previous record and this one.
func (r *RecordDiff) Show(ctx context.Context, record *run.Record) error {
	r.record = record
	var events []run.Event
	if r.seen == nil {
		r.seen = map[run.TaskRef]run.TaskRecord{}
		r.Progress.follow(record.Run)
		events = append(events, run.Event{At: record.CreatedAt, Data: &run.Submitted{Flow: record.Flow}})
	}
	var whole []run.Event // of a fan-out: its end follows those of its items
	var counted []callKey // fan-outs
	for i, t := range record.Tasks {
		ref := t.Ref()
		if t.Counts != nil {
			counted = append(counted, callKey{record.Run, ref})
			r.Progress.count(callKey{record.Run, ref}, *t.Counts)
			if r.seen[ref].Counts == nil && !t.Reused {
				events = append(events, run.Event{At: known(t.StartedAt), Data: &run.TaskExpanded{TaskRef: ref}})
			}
		}
		var now []run.Event
		for _, data := range happened(ref, r.seen[ref], t) {
			now = append(now, run.Event{At: when(data, &t), Data: data})
		}
		r.seen[ref] = t
		more := i+1 < len(record.Tasks) && record.Tasks[i+1].Task == t.Task
		if t.Key == nil && more {
			whole = now
			continue
		}
		events = append(events, now...)
		if !more {
			events, whole = append(events, whole...), nil
		}
	}
	if record.State.Done() {
		end := &run.Finished{State: record.State, Output: record.Output, Failure: record.Error}
		events = append(events, run.Event{At: known(record.FinishedAt), Data: end})
	}
	for _, e := range events {
		if err := r.Progress.Committed(ctx, r.notice(e)); err != nil {
			return err
		}
	}
	for _, task := range counted {
		r.Progress.showCounts(task)
	}
	return nil
}

// shownWait is a reason without its numbers, which change while something waits.
type shownWait struct {
	task   run.TaskRef // none for the run
	reason run.WaitReason
	limit  string
	run    run.ID
}

// ShowWaits shows what the run and its tasks wait for, each reason once. Items of large
// fan-outs are summed up, as ever. Which tasks are before a task, and when the next
// attempt begins, needs no line.
func (r *RecordDiff) ShowWaits(record *run.Record) {
	if why := RunWaits(record.WaitsFor); why != "" {
		r.showWait(run.TaskRef{}, record.WaitsFor, "run "+string(record.Run), string(record.State), why)
	}
	for _, g := range taskGroups(record) {
		r.showTaskWait(g.task)
		if len(g.items) <= maxItems {
			for _, item := range g.items {
				r.showTaskWait(item)
			}
		}
	}
}

func (r *RecordDiff) showTaskWait(t *run.TaskRecord) {
	if t.WaitsFor == nil {
		return
	}
	switch t.WaitsFor.Reason {
	case run.WaitUpstream, run.WaitRetry, run.WaitSleep, run.WaitOperation, run.WaitMaxParallel:
		return
	}
	r.showWait(t.Ref(), t.WaitsFor, t.Ref().Label(), string(t.State), TaskWaits(t))
}

func (r *RecordDiff) showWait(task run.TaskRef, w *run.WaitsFor, label, state, why string) {
	known := shownWait{task, w.Reason, w.Limit, w.Run}
	if r.waits[known] {
		return
	}
	if r.waits == nil {
		r.waits = map[shownWait]bool{}
	}
	r.waits[known] = true
	r.Progress.note(label, state, why)
}

func (r *RecordDiff) notice(e run.Event) run.Notice {
	e.Run = r.record.Run
	n := run.Notice{Flow: r.record.Flow, Event: e}
	if _, last := e.Data.(*run.Finished); last {
		n.Record = r.record
	}
	return n
}

// when is the time of an event of a task. The record has only the times of its first
// start and of its end; events in between get that of the end, or the current one.
func when(data run.EventData, t *run.TaskRecord) time.Time {
	first := false
	switch d := data.(type) {
	case *run.AttemptStarted:
		first = d.Attempt == 1
	case *run.ChildStarted:
		first = d.Attempt == 1
	case *run.WaitStarted:
		first = true
	}
	if first {
		return known(t.StartedAt)
	}
	return known(t.FinishedAt)
}

// known is a time of a record, or now if the record has none.
func known(at *time.Time) time.Time {
	if at == nil {
		return time.Now().UTC()
	}
	return *at
}

// happened are the events between two records of a task.
func happened(ref run.TaskRef, before, now run.TaskRecord) []run.EventData {
	var events []run.EventData
	begun := now.Attempts > before.Attempts
	switch {
	case begun && now.Child != "":
		events = append(events, &run.ChildStarted{TaskRef: ref, Attempt: now.Attempts, Child: now.Child})
	case begun:
		events = append(events, &run.AttemptStarted{TaskRef: ref, Attempt: now.Attempts, Module: now.Module})
	}
	over := now.State.Done() && !before.State.Done()
	again := now.State == run.Ready && now.Attempts > 0 && (begun || before.State == run.Running)
	switch {
	case (over || again) && now.Attempts > 0 && now.Outcome != nil:
		end := &run.AttemptFinished{TaskRef: ref, Attempt: now.Attempts, Outcome: *now.Outcome, Failure: now.Error}
		if over && now.DurationMS != nil {
			end.Duration = milliseconds(*now.DurationMS)
		}
		events = append(events, end)
	case isWait(&now) && now.StartedAt != nil && !now.Reused:
		events = append(events, waited(&before, &now)...)
	case over:
		events = append(events, &run.TaskEnded{TaskRef: ref, State: now.State, Failure: now.Error, Reason: now.Reason})
	}
	return events
}

// waited are the events between two records of a wait.
func waited(before, now *run.TaskRecord) []run.EventData {
	var events []run.EventData
	if before.StartedAt == nil && !now.State.Done() {
		events = append(events, waitBegun(now))
	}
	if now.State.Done() && !before.State.Done() {
		events = append(events, &run.WaitEnded{TaskRef: run.TaskRef{Task: now.Task}, State: now.State, Failure: now.Error})
	}
	return events
}
