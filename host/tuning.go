package host

import (
	"time"

	"github.com/flowhost/flowhost/run"
)

// Tuning is the part of a [Config] that may change while the host runs. Its fields and
// their defaults are those of the same names there.
type Tuning struct {
	Limits  run.Limits
	Timeout time.Duration
	Grace   time.Duration
}

// Tune replaces the tuning for calls that begin, and the grace also of those that run. A
// module that is prepared already keeps the limits of its initialization.
func (h *Host) Tune(t Tuning) {
	t = t.withDefaults()
	h.tuning.Store(&t)
}
