package schedsim

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/scheduler"
)

// Defaults of a [Config].
const (
	DefaultTakes    = 30 * time.Second
	DefaultMaxFires = 1_000_000
)

// Config configures a simulation. Flows, From and To are required.
type Config struct {
	Flows    []*flows.Flow // of these, the schedules that are enabled
	From, To time.Time     // nominal times from From on, up to, but not including, To

	// Takes is how long a run takes that waits for nothing; default DefaultTakes. The
	// tasks on a longest path through its flow share it equally, and every other
	// task takes as long as one of these.
	Takes     time.Duration
	FlowTakes map[string]time.Duration // for flows that take another time, by name

	Workers  int      // tasks at once, see package fairq; default: no bound
	Outages  []Outage // of the host, in any order
	MaxFires int      // nominal times of all schedules; default DefaultMaxFires

	closed func(o *openRun, at time.Time) // tests look at each run that ends
}

// Outage is a time in which the host is down, from From up to To. Tasks that are
// running then are repeated afterwards.
type Outage struct {
	From, To time.Time
}

// TooManyError reports that a range is too long for what fires in it.
type TooManyError struct {
	Limit    int
	Reached  time.Time
	Schedule run.ScheduleRef // that fires most
	Times    int             // how often, until then
}

func (e *TooManyError) Error() string {
	return fmt.Sprintf("there are more than %d fires, the limit: it is reached at %s, and %s fires most, %d times until then; choose a shorter range",
		e.Limit, e.Reached.Format(time.RFC3339), e.Schedule, e.Times)
}

// simulation is a range of time on its way.
type simulation struct {
	Config
	clock     *scheduler.VirtualClock
	queue     *scheduler.Queue[func()]
	stop      context.CancelCauseFunc
	schedules []*schedule
	gates     map[gateKey]*gate
	starting  []*openRun // have got their slot and start next
	workers   workers
	down      bool

	interrupted []task // while it is down: those that continue afterwards
	fires       int
	accepted    int // runs
	open        int // runs that are not finished
	most        int // of these at once
	herds       herds
}

// Run simulates. It fails with *TooManyError and with ctx's error.
func Run(ctx context.Context, c Config) (*Report, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	s := newSimulation(c, stop)
	for _, o := range merged(c.Outages) {
		s.at(o.From, s.goDown)
		s.at(o.To, s.comeUp)
	}
	for _, sc := range s.schedules {
		s.wind(sc)
	}
	end := s.To.Add(-1)
	if err := s.queue.RunUntil(ctx, end, s.turn); err != nil {
		return nil, cmp.Or(context.Cause(ctx), err)
	}
	return s.report(), nil
}

func newSimulation(c Config, stop context.CancelCauseFunc) *simulation {
	c.Takes = cmp.Or(max(c.Takes, 0), DefaultTakes)
	c.MaxFires = cmp.Or(max(c.MaxFires, 0), DefaultMaxFires)
	clock := scheduler.NewVirtualClock(c.From)
	s := &simulation{
		Config: c, clock: clock, stop: stop,
		queue: scheduler.NewQueue[func()](scheduler.Options{Clock: clock, Limit: math.MaxInt32}),
		gates: map[gateKey]*gate{},
	}
	s.workers = newWorkers(c.Workers)
	for _, f := range c.Flows {
		p := newPlan(f, cmp.Or(c.FlowTakes[f.Name], c.Takes))
		for _, t := range f.Triggers {
			if t.Kind == run.TriggerSchedule && t.Enabled {
				s.schedules = append(s.schedules, newSchedule(len(s.schedules), p, t, c.From))
			}
		}
	}
	return s
}

func (s *simulation) now() time.Time { return s.clock.Now() }

// turn is one batch of what is due, and what can start after it.
func (s *simulation) turn(due []func()) {
	for _, f := range due {
		f()
	}
	s.dispatch()
}

// at arms a timer for what ends at an instant.
func (s *simulation) at(due time.Time, f func()) scheduler.Timer { return s.add(due, 0, f) }

// after arms one for what happens when everything else has, at that instant.
func (s *simulation) after(due time.Time, f func()) scheduler.Timer { return s.add(due, -1, f) }

func (s *simulation) add(due time.Time, priority int8, f func()) scheduler.Timer {
	timer, err := s.queue.AddPriority(due, priority, f)
	if err != nil {
		s.stop(err)
	}
	return timer
}

// count bounds the simulation.
func (s *simulation) count(sc *schedule) {
	sc.stats.Times++
	if s.fires++; s.fires <= s.MaxFires {
		return
	}
	top := slices.MaxFunc(s.schedules, func(a, b *schedule) int { return a.stats.Times - b.stats.Times })
	s.stop(&TooManyError{Limit: s.MaxFires, Reached: s.now(), Schedule: top.stats.Schedule, Times: top.stats.Times})
}

// merged is outages in order, none within another.
func merged(outages []Outage) []Outage {
	outages = slices.Clone(outages)
	slices.SortFunc(outages, func(a, b Outage) int { return a.From.Compare(b.From) })
	var out []Outage
	for _, o := range outages {
		last := len(out) - 1
		switch {
		case !o.To.After(o.From):
		case last >= 0 && !o.From.After(out[last].To):
			out[last].To = later(out[last].To, o.To)
		default:
			out = append(out, o)
		}
	}
	return out
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
