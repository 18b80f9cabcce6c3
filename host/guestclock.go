package host

import (
	crand "crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
	"time"

	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/run/access"
)

// clockStep is how far a guest's clocks move with each read. Equal calls read
// equally often, so they see equal times.
const clockStep = time.Millisecond

// clock is the time inside one call. Both of its faces show the same elapsed
// time: the wall from the call's nominal time, the monotonic one from zero.
type clock struct {
	start   time.Time // on the wall, when nothing has elapsed
	elapsed time.Duration
	real    time.Time // when the call began, of a call that is granted the real time; zero for others
}

// set lets the wall show the call's nominal time when so much has elapsed on the
// monotonic clock.
func (c *clock) set(scheduled time.Time, elapsed time.Duration) {
	if scheduled.IsZero() {
		scheduled = time.Unix(0, 0)
	}
	c.start, c.elapsed = scheduled.Add(-elapsed), elapsed
}

func (c *clock) walltime() (sec int64, nsec int32) {
	if !c.real.IsZero() {
		now := time.Now()
		return now.Unix(), int32(now.Nanosecond())
	}
	c.elapsed += clockStep
	now := c.start.Add(c.elapsed)
	return now.Unix(), int32(now.Nanosecond())
}

func (c *clock) nanotime() int64 {
	if !c.real.IsZero() {
		return int64(c.elapsed + time.Since(c.real))
	}
	c.elapsed += clockStep
	return int64(c.elapsed)
}

// random is the source of a guest's random numbers: the same for all attempts
// of a task run, unless it is granted real ones. The zero value is that of initialization.
type random struct {
	run, task, key string
	real           bool
	source         *rand.ChaCha8 // made when the first one is asked for
}

func randomOf(call *run.Call) random {
	return random{run: string(call.Run), task: call.Task, key: call.Key, real: call.Grants.Random == access.Real}
}

// Read never fails.
func (r *random) Read(p []byte) (int, error) {
	if r.real {
		return crand.Read(p)
	}
	if r.source == nil {
		r.source = r.seeded()
	}
	return r.source.Read(p)
}

func (r *random) seeded() *rand.ChaCha8 {
	var seed []byte
	for _, part := range []string{"flowhost random v1", r.run, r.task, r.key} {
		seed = binary.BigEndian.AppendUint32(seed, uint32(len(part)))
		seed = append(seed, part...)
	}
	return rand.NewChaCha8(sha256.Sum256(seed))
}
