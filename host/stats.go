package host

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Stats is what a host is doing, and what it has done with instances.
type Stats struct {
	Running int   `json:"running"` // calls
	Waiting int   `json:"waiting"` // calls
	Idle    int   `json:"idle"`    // instances
	Memory  int64 `json:"memory"`  // bytes that calls and idle instances hold, of [Config].Memory

	Modules []ModuleStats `json:"modules"` // of which something has run, by digest
}

// ModuleStats is the same of one module.
type ModuleStats struct {
	Digest  string `json:"digest"`
	Running int    `json:"running"`
	Waiting int    `json:"waiting"`
	Idle    int    `json:"idle"`

	Made   int64 `json:"made"`   // instances
	Reused int64 `json:"reused"` // calls that got an instance that was there

	// Discarded counts the instances that could not be used again, by the reason.
	Discarded map[string]int64 `json:"discarded,omitempty"`

	Sandbox Sandbox `json:"sandbox"`
}

// Ways in which a call gets an instance that nobody has touched.
const (
	StrategyCopyOnWrite = "copy-on-write" // an instance goes back to an image that it shares with others
	StrategyCopy        = "copy"          // an instance is overwritten with a copy of its first state
	StrategyFresh       = "fresh"         // each call initializes an instance of its own
)

// Sandbox is how the instances of a module are had.
type Sandbox struct {
	Strategy string        `json:"strategy,omitempty"` // one of the Strategy constants; empty before the first call
	Reason   string        `json:"reason,omitempty"`   // of StrategyFresh
	Image    int64         `json:"image,omitempty"`    // bytes of an instance's memory when a call begins
	Init     time.Duration `json:"init_ns,omitempty"`  // that initializing one took
	WarmedUp bool          `json:"warmed_up,omitempty"`
	Ways     []Way         `json:"ways,omitempty"` // back to the image, the fastest one first, which is the one in use
	Checks   Checks        `json:"checks"`
}

// Way is one of the ways back to an image, and what it cost when it was measured.
type Way struct {
	Name string        `json:"name"`
	Cost time.Duration `json:"cost_ns"`
}

// Checks is what the host has put into a module so that it can be stopped.
type Checks struct {
	Loops     int `json:"loops"`
	Functions int `json:"functions"` // at whose entry there is one
}

// Stats returns the current state of the host.
func (h *Host) Stats() Stats {
	p := h.calls
	p.mu.Lock()
	defer p.unlock()
	stats := Stats{
		Running: p.instances - p.places, Waiting: p.waiting.Len(), Idle: p.idle.length, Memory: p.memory - p.bytes,
	}
	for image, l := range p.lines {
		stats.Modules = append(stats.Modules, ModuleStats{
			Digest: image.digest, Running: l.running, Waiting: l.waiting, Idle: l.idle.length,
			Made: image.tally.made.Load(), Reused: image.tally.reused.Load(),
			Discarded: image.tally.reasons(), Sandbox: image.sandbox(),
		})
	}
	slices.SortFunc(stats.Modules, func(a, b ModuleStats) int { return strings.Compare(a.Digest, b.Digest) })
	return stats
}

// sandbox describes how instances of the image are had.
func (i *image) sandbox() Sandbox {
	box := Sandbox{Checks: i.checks}
	s := i.state.Load()
	if s == nil {
		return box
	}
	box.Init, box.WarmedUp = s.took, s.warmed
	if s.fresh != "" {
		box.Strategy, box.Reason = StrategyFresh, s.fresh
		return box
	}
	box.Image = int64(s.memory.Size())
	box.Strategy = StrategyCopy
	if s.memory.Shared() {
		box.Strategy = StrategyCopyOnWrite
	}
	_, timings := s.memory.Way()
	for _, t := range timings {
		box.Ways = append(box.Ways, Way{t.Way.String(), t.Cost})
	}
	return box
}

// tally counts what became of instances.
type tally struct {
	made, reused atomic.Int64

	mu        sync.Mutex
	discarded map[string]int64 // by reason
}

func (t *tally) discard(reason string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.discarded == nil {
		t.discarded = map[string]int64{}
	}
	t.discarded[reason]++
}

func (t *tally) reasons() map[string]int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.discarded)
}
