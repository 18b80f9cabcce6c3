package schedsim

import (
	"encoding/binary"
	"math"
	"slices"
	"time"

	"github.com/flowhost/flowhost/run"
)

// MaxHerds is how many kinds of minutes a report has.
const MaxHerds = 5

// maxKept bounds the kinds of minutes in memory. When there are more, the smaller
// ones are forgotten.
const maxKept = 1024

// Herd is a minute in which runs begin, with all others in which as many of the
// same schedules do.
type Herd struct {
	Minute    time.Time // the first one, in UTC
	Minutes   int       // how many there are
	Runs      int       // that begin in each
	Late      int       // of Runs: caught up with after an outage
	Schedules []HerdShare

	// Jitter would spread the runs of those schedules that have none yet: the
	// shortest handy one with which about one run begins in a minute, no longer than
	// half the wait between the times of a schedule. 0 when there is none, when fewer
	// than two schedules are concerned, and when runs are late.
	Jitter time.Duration
}

// HerdShare is what one schedule begins in such a minute.
type HerdShare struct {
	Schedule run.ScheduleRef
	Runs     int
}

// herds counts the runs of each minute. Time only moves forward: one minute is open.
type herds struct {
	minute time.Time
	runs   map[*schedule]int
	late   int
	order  []*schedule // of runs
	kinds  map[string]*herd
}

type herd struct {
	Herd
	order []*schedule
}

func (h *herds) note(now time.Time, sc *schedule, late bool) {
	if minute := now.Truncate(time.Minute); minute != h.minute {
		h.close()
		h.minute = minute
	}
	if h.runs == nil {
		h.runs = map[*schedule]int{}
	}
	if h.runs[sc] == 0 {
		h.order = append(h.order, sc)
	}
	h.runs[sc]++
	if late {
		h.late++
	}
}

// close puts the minute to others of its kind.
func (h *herds) close() {
	if len(h.order) == 0 {
		return
	}
	slices.SortFunc(h.order, func(a, b *schedule) int { return a.number - b.number })
	kind := binary.AppendUvarint(nil, uint64(h.late))
	for _, sc := range h.order {
		kind = binary.AppendUvarint(binary.AppendUvarint(kind, uint64(sc.number)), uint64(h.runs[sc]))
	}
	if h.kinds == nil {
		h.kinds = map[string]*herd{}
	}
	known := h.kinds[string(kind)]
	if known == nil {
		known = h.begin()
		h.kinds[string(kind)] = known
	}
	known.Minutes++
	h.order, h.late = h.order[:0], 0
	clear(h.runs)
	h.forget()
}

func (h *herds) begin() *herd {
	begun := &herd{Herd: Herd{Minute: h.minute, Late: h.late}, order: slices.Clone(h.order)}
	for _, sc := range h.order {
		begun.Runs += h.runs[sc]
		begun.Schedules = append(begun.Schedules, HerdShare{sc.stats.Schedule, h.runs[sc]})
	}
	return begun
}

// forget keeps the largest kinds.
func (h *herds) forget() {
	if len(h.kinds) <= maxKept {
		return
	}
	for i, small := range h.sorted() {
		if i >= maxKept/2 {
			delete(h.kinds, small)
		}
	}
}

// sorted gives the kinds, those with most runs first, then those that come most
// often, then the earliest.
func (h *herds) sorted() []string {
	kinds := make([]string, 0, len(h.kinds))
	for kind := range h.kinds {
		kinds = append(kinds, kind)
	}
	slices.SortFunc(kinds, func(a, b string) int {
		x, y := h.kinds[a], h.kinds[b]
		switch {
		case x.Runs != y.Runs:
			return y.Runs - x.Runs
		case x.Minutes != y.Minutes:
			return y.Minutes - x.Minutes
		}
		return x.Minute.Compare(y.Minute)
	})
	return kinds
}

// top is the report: kinds of minutes with more than one run.
func (h *herds) top() []Herd {
	h.close()
	var top []Herd
	for _, kind := range h.sorted() {
		known := h.kinds[kind]
		if len(top) == MaxHerds || known.Runs < 2 {
			break
		}
		known.Jitter = known.jitter()
		top = append(top, known.Herd)
	}
	return top
}

// jitter is what would spread a herd.
func (h *herd) jitter() time.Duration {
	if h.Late > 0 {
		return 0 // it delays what is due, and these were
	}
	runs, concerned, wait := 0, 0, time.Duration(math.MaxInt64)
	for i, sc := range h.order {
		if sc.spec.Jitter.Max > 0 {
			continue
		}
		concerned++
		runs += h.Schedules[i].Runs
		if first, ok := sc.spec.Schedule.Next(h.Minute.Add(-1)); ok {
			if next, more := sc.spec.Schedule.Next(first); more {
				wait = min(wait, next.Sub(first))
			}
		}
	}
	if concerned < 2 {
		return 0
	}
	var best time.Duration
	for _, minutes := range []int{1, 2, 5, 10, 15, 30} {
		handy := time.Duration(minutes) * time.Minute
		if handy > wait/2 {
			break
		}
		if best = handy; runs <= minutes {
			break
		}
	}
	return best
}
