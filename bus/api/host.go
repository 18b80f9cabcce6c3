package api

import (
	"strings"
	"time"

	"github.com/flowhost/flowhost/run"
)

// HostStatus is the state of a host as a whole.
type HostStatus struct {
	Started  time.Time  `json:"started"`         // of the process; distinguishes it from the next one
	Fault    *LoadFault `json:"fault,omitempty"` // why its changed files are not loaded; nil when nothing is wrong
	Pause    *run.Pause `json:"pause,omitempty"` // nil while attempts may start
	Workers  int        `json:"workers"`         // attempts that may compute at once; 0: none starts
	InFlight int        `json:"in_flight"`       // attempts that may compute, or have begun and wait
}

// HostRequest asks for the state of the host, or to resume or drain it.
type HostRequest struct{}

// Check refuses a request that cannot be right, with a *run.RequestError.
func (*HostRequest) Check() error { return nil }

// PauseHostRequest pauses the host.
type PauseHostRequest struct {
	Reason string `json:"reason"` // for those who find it paused
}

// Check refuses a request that cannot be right, with a *run.RequestError.
func (b *PauseHostRequest) Check() error {
	if strings.TrimSpace(b.Reason) == "" {
		return run.Requestf(run.RequestParams, "reason is missing: it is shown to whoever finds the host paused")
	}
	return checkReason(b.Reason)
}

// PausedHost is the answer to a request to pause the host.
type PausedHost struct {
	Pause run.Pause `json:"pause"`
	Began bool      `json:"began"` // with this request; otherwise the host was paused already
}

// ResumedHost is the answer to a request to resume the host.
type ResumedHost struct {
	Ended *run.Pause `json:"ended"` // null when the host was not paused
}
