package engine

import (
	"math/rand/v2"
	"time"

	"github.com/flowhost/flowhost/run"
)

// newID makes the id of a run or a backfill.
func (e *Engine) newID(at time.Time) run.ID {
	if e.config.Random == nil {
		return run.NewID(at)
	}
	return run.DrawID(at, e.config.Random.Uint64)
}

// luck is a random number from 0 to 1, without 1.
func (e *Engine) luck() float64 {
	if e.config.Random == nil {
		return rand.Float64()
	}
	return e.config.Random.Float64()
}
