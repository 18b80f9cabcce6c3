package engine

import "fmt"

// The probes look at what the loop owns. They are called on the loop, see onLoop, or
// after it has ended.

// leftover describes what is left when no run is open: nothing should be.
func (e *Engine) leftover() string {
	if n := e.clock.timers.Len(); n > 0 {
		return fmt.Sprintf("%d timers are left", n)
	}
	if len(e.runLimits.byKey) > 0 || !e.runnable.Empty() || len(e.childStarts) > 0 {
		return fmt.Sprintf("left are %d run limiters, %d sub-flows to start, and in the queue %d tasks with %d attempts", len(e.runLimits.byKey), len(e.childStarts), e.runnable.Len(), e.runnable.Running())
	}
	return ""
}
