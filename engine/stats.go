package engine

// Stats is what an engine has to do, as of its last commit.
type Stats struct {
	Open     int    `json:"open_runs"`
	Ready    int    `json:"ready_tasks"` // wait for a worker
	Running  int    `json:"running_attempts"`
	Stuck    int    `json:"stuck_attempts"` // given up, and not ended yet
	Timers   int    `json:"timers"`         // fires, retries and deadlines
	Fired    uint64 `json:"fired"`          // nominal times of schedules that made a run, since the start
	Dropped  uint64 `json:"dropped_fires"`  // nominal times that made none, since the start
	Revision uint64 `json:"revision"`       // of the journal
	Tail     int    `json:"events_since_snapshot"`
}

// Stats tells what the engine has to do. It does not wait for it.
func (e *Engine) Stats() Stats {
	if s := e.exec.stats.Load(); s != nil {
		return *s
	}
	return Stats{}
}

func (e *executor) count() {
	e.stats.Store(&Stats{
		Open: len(e.open), Ready: e.runnable.Len(), Running: e.config.Workers - e.workers.idle, Stuck: int(e.workers.stuck.Load()),
		Timers: e.clock.timers.Len(), Fired: e.schedules.fired, Dropped: e.schedules.dropped, Revision: e.commits.revision, Tail: e.commits.events,
	})
}
