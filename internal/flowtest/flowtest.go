package flowtest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/flowhost/flowhost/engine"
	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/internal/virtual"
	"github.com/flowhost/flowhost/run"
)

// Config configures tests. The zero value works.
type Config struct {
	Invoker engine.Invoker // makes the calls that are not mocked; default none: they must be
	Timeout time.Duration  // of attempts whose task states none; default the engine's
	Log     *slog.Logger   // of the engine; default: discarded
}

// Result is what came of one test.
type Result struct {
	Test     *flows.Test
	Problems hcl.Diagnostics // why it failed; none when it passed
	Runs     []*run.Record   // the first accepted first; unfinished ones in their current state
	Virtual  time.Duration   // that passed
	Real     time.Duration   // that it took
}

// Passed reports whether the test found nothing wrong.
func (r *Result) Passed() bool { return len(r.Problems) == 0 }

// Run runs a test of a set. It fails when ctx ends, or when the engine does.
func Run(ctx context.Context, set *flows.Set, test *flows.Test, config Config) (*Result, error) {
	began := time.Now()
	t := &trial{Result: &Result{Test: test}, config: config, reported: map[string]bool{}, trace: virtual.NewTrace()}
	begin, end := test.Span()
	r := virtual.New(ctx, virtual.Config{
		Start: begin, Script: t.script, Timeout: config.Timeout, Log: config.Log,
		Finished: t.finished, Recorded: t.recorded, GroupEnded: t.trace.GroupEnded,
		StandsIn: func(of run.ID, task string) bool { return test.StandsIn(t.trace.Path(of, task)) },
	})
	defer r.Close()
	if err := t.perform(ctx, set, r, end); err != nil {
		return nil, err
	}
	t.Virtual = r.Now().Sub(begin)
	t.Real = time.Since(began)
	return t.Result, nil
}

// trial is a test that is being run.
type trial struct {
	*Result
	config   Config
	reported map[string]bool // what is reported once: calls by path, blocks of answers by place
	trace    *virtual.Trace
	answers  answers
}

// perform lets time pass, and holds what came of it against the test.
func (t *trial) perform(ctx context.Context, set *flows.Set, r *virtual.Runner, end time.Time) error {
	if err := r.Deploy(ctx, set.Only(t.Test.Flow, t.Test.Trigger)); err != nil {
		return err
	}
	enough := func() bool { return false }
	if !t.Test.Scheduled() {
		expected, err := t.ask(ctx, r)
		if err != nil || !t.Passed() {
			return err
		}
		if t.Test.Until == 0 {
			enough = func() bool { return len(t.Runs) >= expected }
		}
	}
	if err := t.pass(ctx, r, end, enough); err != nil {
		return err
	}
	if err := t.addOpen(ctx, r); err != nil {
		return err
	}
	t.Problems = append(t.Problems, t.Test.Check(t.ran())...)
	return nil
}

// ran are the runs with what no record has.
func (t *trial) ran() []flows.Ran {
	all := make([]flows.Ran, len(t.Runs))
	for i, r := range t.Runs {
		all[i] = flows.Ran{Record: r, Groups: t.trace.Groups(r.Run)}
	}
	return all
}

// finished notes a run of the tested flow that has ended.
func (t *trial) finished(r *run.Record) {
	if r.Parent == nil {
		t.Runs = append(t.Runs, r)
	}
}

// recorded notes what happens to a run.
func (t *trial) recorded(e run.Event) {
	t.trace.Recorded(e)
	t.foresee(e)
}

// ask asks for the run, and reports how many there are.
func (t *trial) ask(ctx context.Context, r *virtual.Runner) (runs int, err error) {
	receipt, err := r.Submit(ctx, t.Test.Request())
	refused := (*run.RequestError)(nil)
	switch {
	case errors.As(err, &refused):
		t.problem("The run was refused", sentence(refused.Message))
		return 0, nil
	case err != nil:
		return 0, err
	case receipt.Accepted:
		return 1, nil
	}
	return 0, nil
}

// addOpen adds the runs that have not ended.
func (t *trial) addOpen(ctx context.Context, r *virtual.Runner) error {
	query := run.Query{States: []run.State{run.Pending, run.Running}, Limit: run.MaxPage}
	for {
		page, err := r.Engine().List(ctx, query)
		if err != nil {
			return err
		}
		for _, summary := range page.Runs {
			record, err := r.Engine().Get(ctx, summary.Run)
			if err != nil {
				return err
			}
			t.Runs = append(t.Runs, record)
		}
		if query.Before = page.Next; query.Before == "" {
			break
		}
	}
	slices.SortStableFunc(t.Runs, func(a, b *run.Record) int { return a.CreatedAt.Compare(b.CreatedAt) })
	if t.Test.Until == 0 && len(t.Runs) > 0 && !t.Runs[0].State.Done() {
		t.problem("The run is stuck", "No attempt is running and no timer is set."+t.unanswered())
	}
	return nil
}

// script returns what the test mocks for a call, or calls the real module.
func (t *trial) script(call *run.Call, _ time.Time) virtual.ScriptedCall {
	called := t.trace.Called(call)
	mocked, diags := t.Test.Mock(called)
	switch {
	case diags.HasErrors():
		return t.refuse(called, diags)
	case mocked != nil:
		return virtual.ScriptedCall{Takes: mocked.Takes, Hangs: mocked.Hangs, Result: mocked.Result}
	case t.config.Invoker == nil:
		return t.refuse(called, t.unmocked(called, "There are no modules here to be called."))
	case len(call.Grants.Files) > 0:
		return t.refuse(called, t.unmocked(called, "Its module is granted files, and a test must not touch them."))
	case !call.Grants.IsZero():
		return t.refuse(called, t.unmocked(called, "Its module is granted more than to compute, and a test reaches nothing."))
	}
	return virtual.ScriptedCall{Call: t.config.Invoker.Invoke}
}

func (t *trial) unmocked(call flows.Called, why string) hcl.Diagnostics {
	at := t.Test.Range
	return hcl.Diagnostics{{
		Severity: hcl.DiagError, Summary: "A task without a mock was called", Subject: &at,
		Detail: fmt.Sprintf("The run has come to task %q. %s Say what the call does: mock %q { output = … }.", call.Path, why, call.Path),
	}}
}

// refuse notes why a call cannot be made, once for each task, and fails it for
// good.
func (t *trial) refuse(call flows.Called, diags hcl.Diagnostics) virtual.ScriptedCall {
	if !t.reported[call.Path] {
		t.reported[call.Path] = true
		t.Problems = append(t.Problems, diags...)
	}
	return virtual.ScriptedCall{Result: run.Result{Outcome: run.OutcomeDenied, Failure: &run.Failure{
		Outcome: run.OutcomeDenied, Code: run.CodeDenied, Message: "the test cannot make this call: " + diags[0].Summary,
	}}}
}

func (t *trial) problem(summary, detail string) { t.problemAt(t.Test.Range, summary, detail) }

func (t *trial) problemAt(at hcl.Range, summary, detail string) {
	t.Problems = append(t.Problems, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: summary, Detail: detail, Subject: &at})
}

// sentence makes one of a message.
func sentence(s string) string {
	if s != "" && s[len(s)-1] != '.' {
		s += "."
	}
	return s
}
