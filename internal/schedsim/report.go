package schedsim

import (
	"fmt"
	"slices"
	"time"

	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/scheduler"
)

// Report is what a simulation has come to.
type Report struct {
	Schedules []ScheduleReport // in the order of the flows and of their triggers
	Herds     []Herd           // the minutes in which most runs begin, at most MaxHerds kinds of them
	Pool      Pool
	Changes   []Change // of the offsets of the schedules' zones within the range
	MostOpen  int      // runs that were not finished at one time
	Notes     []string // what the assumptions do not fit with
}

// ScheduleReport is what a schedule does in the range.
type ScheduleReport struct {
	Schedule run.ScheduleRef

	Times    int // nominal times that came to be decided, without Missed
	Runs     int // that they have made
	Skipped  int // because of runs that were still going
	Rejected int // because the flow makes no run of them
	Missed   int // dropped after an outage, counted up to 10 000 for each

	CaughtUp int           // of Runs: late, after an outage
	Canceled int           // of Runs: in favor of the next one
	Waited   int           // of Runs: for the end of an earlier one or a slot of the flow
	MaxWait  time.Duration // of these
	Open     int           // of Runs: not finished at the end of the range

	Reason string // of the last one of Rejected
}

// Pool is what the workers do in the range.
type Pool struct {
	Workers       int             // 0: as many as are needed
	Used          float64         // seconds of work, of all workers together
	MostRunning   int             // tasks at once
	AllBusy       time.Duration   // how long as many tasks computed as Workers, or more
	MostWaiting   int             // tasks that were ready and had no worker, at once
	MostWaitingAt time.Time       // first time
	LongestWait   time.Duration   // of such a task, while the host was up
	LongestWaitOf run.ScheduleRef // whose run it was of
	LongestWaitAt time.Time       // when it began
}

// report closes the accounts.
func (s *simulation) report() *Report {
	r := &Report{
		Pool: s.workers.report(s.To), MostOpen: s.most,
		Herds: s.herds.top(), Changes: s.changes(), Notes: s.notes(),
	}
	for _, sc := range s.schedules {
		for _, o := range sc.open {
			if o.state == pending {
				o.waitedFor(s.To.Sub(o.accepted))
			}
			for _, t := range o.followers {
				t.waitedFor(s.To.Sub(t.since))
			}
		}
		sc.stats.Open = len(sc.open)
		r.Schedules = append(r.Schedules, *sc.stats)
	}
	return r
}

// maxOpen is how many runs a host has open at once, as engine has it by default.
const maxOpen = 100_000

// notes describes where a timeout would cut off runs, or a limit refuse them.
func (s *simulation) notes() []string {
	var notes []string
	if s.most > maxOpen {
		notes = append(notes, fmt.Sprintf("%d runs are open at once, and a host takes no new ones beyond %d", s.most, maxOpen))
	}
	var last *plan
	for _, sc := range s.schedules {
		if sc.plan == last {
			continue
		}
		last = sc.plan
		if note := sc.plan.overdue(); note != "" {
			notes = append(notes, note)
		}
	}
	return notes
}

// defaultTimeout is that of attempts whose task states none, as engine has it.
const defaultTimeout = 5 * time.Minute

// overdue returns a timeout that is shorter than the assumed duration.
func (p *plan) overdue() string {
	if limit := p.flow.Timeout; limit > 0 && p.takes > limit {
		return fmt.Sprintf("flow %s: a run would be stopped by its timeout of %s", p.flow.Name, limit)
	}
	for node, t := range p.flow.Tasks {
		limit, from := t.Timeout, ""
		if limit <= 0 {
			limit, from = defaultTimeout, ", the default"
		}
		if !p.skipped[node] && !p.passes(node) && p.each > limit {
			return fmt.Sprintf("flow %s: task %s would take %s and be stopped by its timeout of %s%s",
				p.flow.Name, t.Name, p.each, limit, from)
		}
	}
	return ""
}

// Change is one change of a zone's offset, and what it does to schedules.
type Change struct {
	Zone string
	scheduler.Transition
	Effects []ScheduleEffect
}

// ScheduleEffect is what a change does to one schedule.
type ScheduleEffect struct {
	Schedule run.ScheduleRef
	Effect
}

// changes are those of all zones of the schedules, by time.
func (s *simulation) changes() []Change {
	var all []Change
	seen := map[string]bool{}
	for _, sc := range s.schedules {
		if seen[sc.spec.Zone] {
			continue
		}
		seen[sc.spec.Zone] = true
		zone, err := time.LoadLocation(sc.spec.Zone)
		if err != nil {
			continue
		}
		for c, ok := scheduler.NextTransition(zone, s.From.Add(-1)); ok && c.At.Before(s.To); c, ok = scheduler.NextTransition(zone, c.At) {
			all = append(all, Change{Zone: sc.spec.Zone, Transition: c, Effects: s.effects(sc.spec.Zone, c)})
		}
	}
	slices.SortStableFunc(all, func(a, b Change) int { return a.At.Compare(b.At) })
	return all
}

func (s *simulation) effects(zone string, c scheduler.Transition) []ScheduleEffect {
	var all []ScheduleEffect
	for _, sc := range s.schedules {
		if sc.spec.Zone == zone {
			all = append(all, ScheduleEffect{sc.stats.Schedule, EffectOf(sc.spec.Schedule, c)})
		}
	}
	return all
}
