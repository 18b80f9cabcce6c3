package schedsim

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/flowhost/flowhost/engine"
	"github.com/flowhost/flowhost/engine/memory"
	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/run/wire"
)

// span is one run, in times since the epoch.
type span struct {
	Schedule          run.ScheduleRef
	Nominal, From, To time.Duration
}

func (s span) String() string {
	return fmt.Sprintf("%s of %s from %s to %s", s.Schedule, s.Nominal, s.From, s.To)
}

func sorted(all []span) []string {
	slices.SortFunc(all, func(a, b span) int {
		return max(min(int(a.Nominal-b.Nominal), 1), -1)*2 + a.Schedule.Compare(b.Schedule)
	})
	var lines []string
	for _, s := range all {
		lines = append(lines, s.String())
	}
	return lines
}

// begun leaves the ends out.
func begun(all []span) {
	for i := range all {
		all[i].To = 0
	}
}

func since(t time.Time) time.Duration {
	if t.IsZero() {
		return 0
	}
	return t.Sub(epoch)
}

// sleeper is a host whose calls take a while each, or until they are stopped.
type sleeper map[string]time.Duration

func (s sleeper) Invoke(ctx context.Context, call run.Call) (run.Result, error) {
	select {
	case <-time.After(s[call.Flow]):
		return run.Result{Outcome: run.OutcomeSucceeded, Output: call.Input}, nil
	case <-ctx.Done():
		if cause := context.Cause(ctx); cause != run.ErrCanceled {
			return run.Result{}, cause
		}
		return run.Result{Outcome: run.OutcomeCanceled, Failure: &run.Failure{Outcome: run.OutcomeCanceled, Message: "stopped"}}, nil
	}
}

// lived runs flows with the engine, with the given outages, and gives the runs that
// have ended.
func lived(t *testing.T, set *flows.Set, each sleeper, workers int, lasts time.Duration, outages []Outage) []span {
	journal := memory.NewJournal()
	boot := func() (crash func()) {
		ctx, kill := context.WithCancel(t.Context())
		e := engine.New(engine.Config{
			Journal: journal, Invoker: each, Workers: workers,
			Restore: func(context.Context, *run.Definition) (*flows.Set, error) { return set, nil },
		})
		ended := make(chan error, 1)
		go func() { ended <- e.Run(ctx) }()
		if err := e.Deploy(ctx, set); err != nil {
			t.Error(err)
		}
		return func() { kill(); <-ended }
	}
	crash := boot()
	for _, o := range outages {
		time.Sleep(time.Until(o.From))
		crash()
		time.Sleep(time.Until(o.To))
		crash = boot()
	}
	time.Sleep(time.Until(epoch.Add(lasts)))
	crash()
	return recorded(t, journal)
}

func recorded(t *testing.T, j engine.Journal) []span {
	var all []span
	shard := run.NewShard()
	err := j.Replay(t.Context(), 0, func(_ uint64, stored []byte) error {
		commit, err := wire.DecodeCommit(stored)
		if err != nil {
			return err
		}
		for _, e := range commit.Events {
			r, err := shard.Apply(e)
			if err != nil {
				return err
			}
			if _, done := e.Data.(*run.Finished); done {
				ref := run.ScheduleRef{Flow: r.Flow, Trigger: r.Trigger.Name}
				all = append(all, span{ref, since(r.Trigger.Time), since(r.StartedAt), since(r.FinishedAt)})
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	return all
}

// imagined simulates flows, and gives the runs that have ended.
func imagined(t *testing.T, c Config) []span {
	var all []span
	c.closed = func(o *openRun, at time.Time) {
		all = append(all, span{o.stats.Schedule, since(o.nominal), since(o.started), since(at)})
	}
	if _, err := Run(t.Context(), c); err != nil {
		t.Error(err)
	}
	return all
}

// The simulation makes the runs that the engine makes, and lets them begin and end
// when it does. Times are such that nothing ends at the instant at which something
// else fires: the engine does not state what comes first then.
func TestEngineDoesTheSame(t *testing.T) {
	t.Parallel()
	const chain = `
  task "a" { plugin = "./m.wasm" }
  task "b" {
    plugin = "./m.wasm"
    after  = [task.a]
  }
  task "c" {
    plugin = "./m.wasm"
    after  = [task.a]
  }
  task "never" {
    plugin = "./m.wasm"
    after  = [task.b]
    run_on = "failure"
  }
  task "last" {
    plugin = "./m.wasm"
    after  = [task.c, task.never]
    run_on = "always"
  }
`
	flow := func(name, rest string, triggers ...string) string {
		for i, trigger := range triggers {
			rest = fmt.Sprintf("  trigger \"schedule\" \"s%d\" {\n%s\n  }\n", i, trigger) + rest
		}
		return fmt.Sprintf("flow %q {\n%s}\n", name, rest)
	}
	const s, m = time.Second, time.Minute
	outage := func(from, lasts time.Duration) Outage { return Outage{epoch.Add(from), epoch.Add(from + lasts)} }
	for _, c := range []struct {
		name    string
		source  string
		takes   map[string]time.Duration // a whole run
		workers int
		lasts   time.Duration
		outages []Outage
		tied    bool // tasks end at the same instant for the same workers: which goes first is open
	}{
		{"limit, skip", flow("f", chain+"concurrency {\n on_limit = \"skip\"\n }\n", "every = \"10s\"\noverlap = \"allow\""), map[string]time.Duration{"f": 24 * s}, 8, 5 * m, nil, false},
		{"limit, cancel", flow("f", chain+"concurrency {\n limit = 2\n on_limit = \"cancel_running\"\n }\n", "every = \"10s\"\noverlap = \"allow\""), map[string]time.Duration{"f": 24 * s}, 8, 5 * m, nil, false},
		{"skip", flow("f", chain, `every = "10s"`), map[string]time.Duration{"f": 24 * s}, 8, 5 * m, nil, false},
		{"queue_one", flow("f", chain, "every = \"10s\"\noverlap = \"queue_one\""), map[string]time.Duration{"f": 22200 * time.Millisecond}, 8, 5 * m, nil, false},
		{"queue", flow("f", chain, "every = \"10s\"\noverlap = \"queue\"\noverlap_max = 3"), map[string]time.Duration{"f": 22200 * time.Millisecond}, 8, 5 * m, nil, false},
		{"cancel_running", flow("f", chain, "every = \"10s\"\noverlap = \"cancel_running\"\ncount = 7"), map[string]time.Duration{"f": 24 * s}, 8, 5 * m, nil, false},
		{"allow", flow("f", chain, "every = \"10s\"\noverlap = \"allow\""), map[string]time.Duration{"f": 24 * s}, 40, 5 * m, nil, false},
		{"node", flow("f", chain, "every = \"10s\"\noverlap = \"node\""), map[string]time.Duration{"f": 36 * s}, 8, 5 * m, nil, false},
		{"a limit of the flow", flow("f", chain+"  concurrency { limit = 2 }\n", "every = \"10s\"\noverlap = \"allow\"", "every = \"7s\"\noffset = \"500ms\""),
			map[string]time.Duration{"f": 33 * s}, 8, 5 * m, nil, false},
		{"few workers", flow("f", chain, "every = \"10s\"\noverlap = \"allow\"") + flow("g", chain, "every = \"7s\"\noffset = \"500ms\"\noverlap = \"queue\""),
			map[string]time.Duration{"f": 36 * s, "g": 3300 * time.Millisecond}, 3, 5 * m, nil, false},
		{"jitter", flow("f", chain, "every = \"1m\"\njitter = \"40s\"", "cron = \"*/2 * * * *\"\njitter = \"40s\"\nsplay = \"hash\""),
			map[string]time.Duration{"f": 24 * s}, 8, time.Hour, nil, false},
		{"an outage, the latest", flow("f", chain, "every = \"5m\""), map[string]time.Duration{"f": 24 * s}, 8, 2 * time.Hour, []Outage{outage(7*m, time.Hour)}, false},
		{"outages, all", flow("f", chain, "every = \"1m\"\ncatch_up = \"all\"\noverlap = \"queue\"\noverlap_max = 20\ncatch_up_window = \"12m\""),
			map[string]time.Duration{"f": 50 * s}, 8, 2 * time.Hour, []Outage{outage(7*m+30*s, 30*m), outage(50*m+7*s, 20*s)}, false},
		{"an outage, none, with cut off tasks", flow("f", chain, "every = \"1m\"\ncatch_up = \"none\"\noverlap = \"allow\"\ncount = 20"),
			map[string]time.Duration{"f": 170 * s}, 3, 2 * time.Hour, []Outage{outage(10*m+30*s, 10*m+7*s)}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			set := load(t, c.source)
			const path = 3 // tasks on the longest path of chain
			each := sleeper{}
			for flow, takes := range c.takes {
				each[flow] = takes / path
			}
			got := imagined(t, Config{
				Flows: set.Flows, From: epoch.Add(1), To: epoch.Add(c.lasts), FlowTakes: c.takes, Workers: c.workers, Outages: c.outages,
			})
			synctest.Test(t, func(t *testing.T) {
				want := lived(t, set, each, c.workers, c.lasts, c.outages)
				if len(want) < 5 {
					t.Errorf("only %d runs: the test shows nothing", len(want))
				}
				if c.tied {
					begun(want)
					begun(got)
				}
				if diff := cmp.Diff(sorted(want), sorted(got)); diff != "" {
					t.Errorf("runs of the engine and of the simulation (-engine +simulation):\n%s", diff)
				}
			})
		})
	}
}
