package flowsim

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/internal/virtual"
	"github.com/flowhost/flowhost/run"
)

// DefaultRuns is how many runs are made unless it is stated.
const DefaultRuns = 1000

// MaxRuns bounds how many there may be.
const MaxRuns = 1_000_000

// maxVirtual is how long a run may take.
const maxVirtual = 10 * 365 * 24 * time.Hour

// Config configures a simulation. Set and Flow are required; the zero value of everything
// else is its default.
type Config struct {
	Set  *flows.Set
	Flow *flows.Flow // of Set
	Runs int         // default DefaultRuns
	Seed uint64

	Start   time.Time     // where virtual time begins; default flows.DefaultTestTime
	Workers int           // attempts at once; default virtual.DefaultWorkers
	Timeout time.Duration // of attempts whose task states none; default the engine's

	// Params and Payload are those of each run. When Replay is set, they are those of
	// a run of the History that is drawn.
	Params  map[string]json.RawMessage
	Payload json.RawMessage
	Replay  bool

	Tasks   map[string]Stated // by name; EveryTask for those that have none
	Mocks   *flows.Test       // what calls give; nil for none
	History *History          // nil for none

	// Sample is an output as a task's function may give it, null when nothing is known
	// of it; optional. It is asked once for each task that neither Mocks nor History
	// have one of.
	Sample func(*flows.Task) json.RawMessage

	Show int          // number of the run that is shown, from 1; default 1
	Log  *slog.Logger // of the engine; default: discarded
}

// EveryTask is the name of all tasks in [Config.Tasks].
const EveryTask = "*"

// Stated is what is known of the calls of a task, in place of what is drawn.
type Stated struct {
	Takes *time.Duration // nil: it is drawn
	Waits *float64       // the part of it, from 0 to 1, in which an attempt waits for answers and computes nothing; nil: none
	Fails *float64       // the probability that an attempt fails; nil: as otherwise
}

// RefusedError reports that the flow makes no run of what was asked for.
type RefusedError struct {
	Run    run.ID // of the history, whose params and payload were asked for; empty for those of the Config
	Reason string
}

func (e *RefusedError) Error() string {
	if e.Run == "" {
		return "the flow makes no run: " + e.Reason
	}
	return fmt.Sprintf("the flow makes no run with the params and the payload of run %s of its history: %s", e.Run, e.Reason)
}

// Run makes the runs. It fails with *RefusedError and with ctx's error.
func Run(ctx context.Context, c Config) (*Report, error) {
	c.Runs = min(cmp.Or(max(c.Runs, 0), DefaultRuns), MaxRuns)
	c.Show = min(max(c.Show, 1), c.Runs)
	if c.Start.IsZero() {
		c.Start = flows.DefaultTestTime
	}
	b := newBook(&c)
	known := newKnown(&c)
	quiet := c.Set.Only(c.Flow, nil)
	for number := 1; number <= c.Runs; number++ {
		t := &trial{config: &c, known: known, number: number, trace: virtual.NewTrace()}
		if err := t.perform(ctx, quiet); err != nil {
			return nil, err
		}
		b.note(t)
	}
	return b.report(known), nil
}

// trial is one run.
type trial struct {
	config *Config
	known  *known
	number int
	id     run.ID
	trace  *virtual.Trace
	donor  *donor // the run of the history that outputs are taken from; nil without one

	record   *run.Record // nil for a run that has not ended
	attempts []Attempt   // of its own tasks, by their ends
}

// Attempt is one attempt, in time since the run began.
type Attempt struct {
	Task, Key string
	From, To  time.Duration
	Outcome   run.Outcome
}

func (t *trial) perform(ctx context.Context, set *flows.Set) error {
	c := t.config
	t.donor = t.drawDonor()
	r := virtual.New(ctx, virtual.Config{
		Start: c.Start, Script: t.script, Seed: t.dice("", "", 0).Uint64(), Workers: c.Workers, Timeout: c.Timeout, Log: c.Log,
		Finished: func(finished *run.Record) {
			if finished.Run == t.id {
				t.record = finished
			}
		},
		Ended: t.ended, Recorded: t.trace.Recorded,
		StandsIn: func(of run.ID, task string) bool {
			return c.Mocks != nil && c.Mocks.StandsIn(t.trace.Path(of, task))
		},
	})
	defer r.Close()
	if err := r.Deploy(ctx, set); err != nil {
		return err
	}
	receipt, err := r.Submit(ctx, t.request())
	if refused := (*run.RequestError)(nil); errors.As(err, &refused) {
		return t.refused(refused.Message)
	}
	if err != nil {
		return err
	}
	if !receipt.Accepted {
		return t.refused("its limit of runs at once lets none begin")
	}
	t.id = receipt.Run
	return r.Until(ctx, c.Start.Add(maxVirtual), func() bool { return t.record != nil })
}

func (t *trial) refused(reason string) error {
	e := &RefusedError{Reason: reason}
	if t.config.Replay && t.donor != nil {
		e.Run = t.donor.Run
	}
	return e
}

func (t *trial) request() run.Request {
	c := t.config
	r := run.Request{Flow: c.Flow.Name, Params: c.Params, Trigger: run.Trigger{Kind: run.TriggerManual, Time: c.Start, Payload: c.Payload}}
	if c.Replay && t.donor != nil {
		r.Params, r.Trigger.Payload = t.donor.Params, t.donor.Trigger.Payload
	}
	return r
}

func (t *trial) ended(call *run.Call, began time.Time, result run.Result) {
	if call.Run != t.id {
		return
	}
	from := began.Sub(t.config.Start)
	t.attempts = append(t.attempts, Attempt{Task: call.Task, Key: call.Key, From: from, To: from + result.Duration, Outcome: result.Outcome})
}
