package engine

import (
	"fmt"

	"github.com/flowhost/flowhost/run"
)

// The probes look at what the loop owns. They are called on the loop, see onLoop, or
// after it has ended.

// leftover describes what is left when no run is open: nothing should be.
func (e *Engine) leftover() string {
	if n := e.exec.clock.timers.Len(); n > 0 {
		return fmt.Sprintf("%d timers are left", n)
	}
	if len(e.exec.runLimits.byKey) > 0 || !e.exec.runnable.Empty() || len(e.exec.children.starts) > 0 {
		return fmt.Sprintf("left are %d run limiters, %d sub-flows to start, and in the queue %d tasks with %d attempts", len(e.exec.runLimits.byKey), len(e.exec.children.starts), e.exec.runnable.Len(), e.exec.runnable.Running())
	}
	return ""
}

// finishedKept is how many finished runs the engine keeps.
func (e *Engine) finishedKept() int { return len(e.exec.finished.completions) }

// watching is how many callers wait for a run to change.
func (e *Engine) watching(id run.ID) int { return len(e.exec.watchers.byRun[id]) }

// keepFinished bounds the finished runs that the engine keeps, in bytes. It is called
// outside the loop.
func (r *rig) keepFinished(bytes int) { r.onLoop(func() { r.exec.finished.limit = bytes }) }
