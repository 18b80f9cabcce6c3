package scheduler

import (
	"encoding/binary"
	"time"
)

// Jitter spreads what many schedules have at the same instant. The same name and
// nominal time give the same due time on every host and after every restart. The
// zero value delays nothing.
type Jitter struct {
	Max time.Duration // the delay is shorter than this, and than the wait for the next nominal time

	// Stable gives all nominal times of one name the same delay; otherwise each has
	// its own.
	Stable bool

	Name string // what the delay is derived from: the name of the schedule
}

// Due is when a nominal time of a schedule is to fire.
func (j Jitter) Due(s Schedule, nominal time.Time) time.Time {
	limit := j.Max
	if limit <= 0 {
		return nominal
	}
	var of [8]byte
	if !j.Stable {
		binary.BigEndian.PutUint64(of[:], uint64(nominal.UnixNano()))
	}
	delay := time.Duration(stableHash(j.Name, string(of[:])) % uint64(limit))
	if next, ok := s.Next(nominal); ok {
		delay %= next.Sub(nominal)
	}
	return nominal.Add(delay)
}
