package render

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/flowhost/flowhost/run"
)

// Progress shows the events of one run, the first one submitted after its
// creation, and of the runs of sub-flows within it. Large fan-outs are summed up. It is
// safe for concurrent use.
type Progress struct {
	out  *Terminal
	form string // plain, json or quiet
	made time.Time

	mu      sync.Mutex
	run     run.ID              // empty before the run is known
	logs    map[callKey]run.Log // of the last attempt
	within  runTree
	fanOuts fanOuts
}

// callKey is a task of a run, its items in a fan-out included.
type callKey struct {
	run  run.ID
	task run.TaskRef
}

// NewProgress returns a progress in the given format: auto, plain, json or quiet. On a
// terminal, auto counts the items of fan-outs in place.
func NewProgress(out *Terminal, form string) (*Progress, error) {
	automatic := form == "auto"
	switch form {
	case "auto":
		form = "plain"
	case "plain", "json", "quiet":
	default:
		return nil, fmt.Errorf("--progress %q: auto, plain, json or quiet is expected", form)
	}
	p := &Progress{out: out, form: form, made: time.Now(), logs: map[callKey]run.Log{}}
	if form == "plain" && automatic && out.Interactive {
		p.fanOuts.line = NewStatusLine(out)
		out.Writer = p.fanOuts.line // other messages appear above it
	}
	return p, nil
}

// follow selects the run to show.
func (p *Progress) follow(id run.ID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.run = id
}

// Flush implements engine.Observer: progress has no buffer.
func (p *Progress) Flush(context.Context) error { return nil }

// Committed implements engine.Observer.
func (p *Progress) Committed(_ context.Context, n run.Notice) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, submitted := n.Event.Data.(*run.Submitted); submitted && p.run == "" && !n.Event.At.Before(p.made) {
		p.run = n.Event.Run
	}
	if n.Event.Run == "" || n.Event.Run != p.run && !p.within.has(n.Event.Run) {
		return nil
	}
	p.within.note(n.Event)
	switch p.form {
	case "plain":
		p.plain(n)
	case "json":
		return p.json(n)
	}
	return nil
}

// plain writes one line for each change of state.
func (p *Progress) plain(n run.Notice) {
	path := p.within.path(n.Event.Run)
	if path != "" && !run.OfTask(n.Event.Data) {
		return // the task's own line shows it
	}
	if p.sumUp(path, n.Event) {
		return
	}
	switch d := n.Event.Data.(type) {
	case *run.Submitted:
		p.line("run "+string(n.Event.Run), "pending", "flow "+d.Flow)
	case *run.AttemptStarted:
		detail := ""
		if d.Attempt > 1 {
			detail = fmt.Sprintf("attempt %d", d.Attempt)
		}
		p.line(path+d.TaskRef.Label(), string(run.Running), detail)
	case *run.AttemptFinished:
		var details []string
		if d.Duration > 0 { // not known of every attempt of a run that is watched
			details = append(details, Short(d.Duration))
		}
		if d.Failure != nil {
			details = append(details, Printable(d.Failure.Error()))
		}
		if !d.RetryAt.IsZero() {
			details = append(details, again(d.RetryAt.Sub(n.Event.At)))
		}
		p.line(path+d.TaskRef.Label(), string(d.Outcome), strings.Join(details, ", "))
	case *run.TaskEnded:
		p.line(path+d.TaskRef.Label(), string(d.State), whyEnded(d))
	case *run.WaitStarted:
		p.line(path+d.Task, string(run.Waiting), waitsFor(d))
	case *run.WaitEnded:
		p.line(path+d.Task, string(d.State), why(d.Failure))
	case *run.ChildStarted:
		p.line(path+d.TaskRef.Label(), string(run.Running), "run "+string(d.Child))
	case *run.CancelRequested:
		p.line("run "+string(n.Event.Run), "stopping", Printable(d.Failure.Message))
	case *run.Finished:
		detail := ""
		if n.Record != nil && n.Record.DurationMS != nil {
			detail = Short(milliseconds(*n.Record.DurationMS))
		}
		p.line("run "+string(n.Event.Run), string(d.State), detail)
	}
}

// why is a failure as a string; empty for none.
func why(f *run.Failure) string {
	if f == nil {
		return ""
	}
	return Printable(f.Error())
}

// whyEnded is why a task ended without an attempt; empty if that needs no reason.
func whyEnded(d *run.TaskEnded) string {
	if d.State == run.Skipped {
		return skipReason(d.Reason, d.Failure)
	}
	return why(d.Failure)
}

// note writes a line for people that is about no event.
func (p *Progress) note(what, word, detail string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.form == "plain" {
		p.line(what, word, detail)
	}
}

func (p *Progress) line(what, word, detail string) {
	if detail != "" {
		detail = p.out.Paint(dim, " ("+detail+")")
	}
	fmt.Fprintf(p.out, "%s: %s%s\n", Printable(what), p.out.Paint(WordColor(word), word), detail)
}

// progressEvent is one line of the JSON form.
type progressEvent struct {
	Kind    string      `json:"kind"` // as the journal names events
	At      time.Time   `json:"at"`
	Flow    string      `json:"flow"`
	Run     run.ID      `json:"run"`
	Task    string      `json:"task,omitempty"`
	Key     string      `json:"key,omitempty"`
	Attempt int         `json:"attempt,omitempty"`
	Outcome run.Outcome `json:"outcome,omitempty"` // of an attempt
	State   run.State   `json:"state,omitempty"`   // of a task or the run that has ended
	RetryAt time.Time   `json:"retry_at,omitzero"`
	Child   run.ID      `json:"child,omitempty"` // the run of a sub-flow that is the attempt

	// Of a wait that begins.
	Subject  string    `json:"subject,omitempty"`
	Approval string    `json:"approval,omitempty"`
	Due      time.Time `json:"due,omitzero"`
	Deadline time.Time `json:"deadline,omitzero"`

	Error  *run.Failure `json:"error,omitempty"`
	Reason string       `json:"reason,omitempty"` // of a task that was skipped
}

func (p *Progress) json(n run.Notice) error {
	e := progressEvent{Kind: n.Event.Data.Kind(), At: n.Event.At, Flow: n.Flow, Run: n.Event.Run}
	switch d := n.Event.Data.(type) {
	case *run.AttemptStarted:
		e.Task, e.Key, e.Attempt = d.Task, d.Key, d.Attempt
	case *run.AttemptFinished:
		e.Task, e.Key, e.Attempt, e.Outcome, e.Error, e.RetryAt = d.Task, d.Key, d.Attempt, d.Outcome, d.Failure, d.RetryAt
	case *run.TaskEnded:
		e.Task, e.Key, e.State, e.Error, e.Reason = d.Task, d.Key, d.State, d.Failure, d.Reason
	case *run.TaskExpanded:
		e.Task = d.Task
	case *run.WaitStarted:
		e.Task, e.Subject, e.Approval, e.Due, e.Deadline = d.Task, d.Subject, d.Approval, d.Due, d.Deadline
	case *run.WaitEnded:
		e.Task, e.State, e.Error = d.Task, d.State, d.Failure
	case *run.ChildStarted:
		e.Task, e.Key, e.Attempt, e.Child = d.Task, d.Key, d.Attempt, d.Child
	case *run.CancelRequested:
		e.Error = d.Failure
	case *run.Finished:
		e.State, e.Error = d.State, d.Failure
	}
	return EncodeLine(p.out, e)
}

// KeepLog keeps the log of a call.
func (p *Progress) KeepLog(call *run.Call, log run.Log) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.logs[callKey{call.Run, run.TaskRef{Task: call.Task, Key: call.Key}}] = log
}

// log is the log of a task's last attempt; for a task that ran a flow, the log of the
// failed task in it.
func (p *Progress) log(id run.ID, task run.TaskRef) run.Log {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.logs[p.within.culprit(callKey{id, task})]
}

// again states when the next attempt begins. On a busy machine its time may have come when
// the end of the one before is recorded.
func again(in time.Duration) string {
	if in <= 0 {
		return "again at once"
	}
	return "again in " + Short(in)
}
