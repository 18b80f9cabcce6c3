package wire

import (
	"maps"
	"slices"

	"github.com/flowhost/flowhost/run"
)

// schedules writes the schedules and backfills of a shard.
func (e *encoder) schedules(s *run.Shard) {
	e.count(len(s.Schedules))
	for _, ref := range slices.SortedFunc(maps.Keys(s.Schedules), run.ScheduleRef.Compare) {
		known := s.Schedules[ref]
		e.schedule(ref)
		e.text(known.Spec)
		e.time(known.Edited)
		e.time(known.Decided)
		e.int(int64(known.Fired))
		e.int(int64(known.Failures))
		e.pause(known.Pause)
	}
	e.count(len(s.Backfills))
	for _, b := range s.Backfills {
		e.backfill(b)
	}
}

func (e *encoder) pause(p *run.Pause) {
	e.bool(p != nil)
	if p != nil {
		e.text(p.Reason)
		e.time(p.At)
	}
}

func (e *encoder) backfill(b *run.Backfill) {
	e.text(string(b.ID))
	e.schedule(b.Schedule)
	e.times(b.Times)
	e.count(len(b.Active))
	for _, id := range b.Active {
		e.text(string(id))
	}
	for _, n := range []int{b.Total, b.MaxActive, b.Succeeded, b.Failed, b.Canceled, b.Rejected} {
		e.int(int64(n))
	}
	e.time(b.StartedAt)
	e.time(b.EndedAt)
	e.text(b.Reason)
	e.time(b.First)
	e.time(b.Last)
}

func (d *decoder) schedules(s *run.Shard) {
	for range d.count() {
		known := &run.Schedule{
			ScheduleRef: d.schedule(), Spec: d.text(), Edited: d.time(), Decided: d.time(), Fired: d.small(), Failures: d.small(),
			Pause: d.pause(),
		}
		s.Schedules[known.ScheduleRef] = known
	}
	for range d.count() {
		s.Backfills = append(s.Backfills, d.backfill())
	}
}

func (d *decoder) pause() *run.Pause {
	if !d.bool() {
		return nil
	}
	return &run.Pause{Reason: d.text(), At: d.time()}
}

func (d *decoder) backfill() *run.Backfill {
	b := &run.Backfill{ID: run.ID(d.text()), Schedule: d.schedule(), Times: d.times()}
	for range d.count() {
		b.Active = append(b.Active, run.ID(d.text()))
	}
	for _, n := range []*int{&b.Total, &b.MaxActive, &b.Succeeded, &b.Failed, &b.Canceled, &b.Rejected} {
		*n = d.small()
	}
	b.StartedAt, b.EndedAt, b.Reason = d.time(), d.time(), d.text()
	b.First, b.Last = d.time(), d.time()
	return b
}
