package engine

import (
	"slices"

	"github.com/flowhost/flowhost/run"
)

// maxFinishedBytes bounds the records of finished runs that are kept so that a
// Wait that comes after the end still finds its run. The history on NATS is the
// place to look for older ones.
const maxFinishedBytes = 64 << 20

// ending is the end of a run as those who wait for it see it.
type ending struct {
	record   *run.Record // once the run is finished; not told before durable
	durable  bool
	revision uint64               // of the commit with the end, once that is durable
	waiting  []chan<- *run.Record // one place each
}

// wait gives the record to answer once it is durable.
func (end *ending) wait(answer chan<- *run.Record) {
	if end.durable {
		answer <- end.record
		return
	}
	end.waiting = append(end.waiting, answer)
}

// leave forgets one that waits no longer.
func (end *ending) leave(answer chan<- *run.Record) {
	end.waiting = slices.DeleteFunc(end.waiting, func(other chan<- *run.Record) bool { return other == answer })
}

func (end *ending) settle(revision uint64) {
	end.durable, end.revision = true, revision
	for _, answer := range end.waiting {
		answer <- end.record
	}
	end.waiting = nil
}

// finishedRuns keeps the latest endings, up to a number of bytes, and those that the
// history has not been given yet: they could be found nowhere else.
type finishedRuns struct {
	limit   int
	endings map[run.ID]*ending
	order   []run.ID
	bytes   int
}

func (f *finishedRuns) get(id run.ID) *ending { return f.endings[id] }

// add adds an ending, and drops the oldest of those up to a revision that the history has.
func (f *finishedRuns) add(end *ending, told uint64) {
	if f.endings == nil {
		f.endings = map[run.ID]*ending{}
	}
	f.endings[end.record.Run] = end
	f.order = append(f.order, end.record.Run)
	f.bytes += recordBytes(end.record)
	for f.bytes > f.limit && len(f.order) > 1 {
		oldest := f.order[0]
		if older := f.endings[oldest]; !older.durable || older.revision > told {
			return
		}
		f.order = f.order[1:]
		f.bytes -= recordBytes(f.endings[oldest].record)
		delete(f.endings, oldest)
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
