package crashtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// KillPoint is the phase of a process in which it is killed.
type KillPoint string

// The kill points. The kill happens at a random time within the phase.
const (
	AtStart    KillPoint = "start"    // in the first 100 ms of the process
	Early      KillPoint = "early"    // in the first 100 ms of service, while runs resume
	UnderLoad  KillPoint = "load"     // in the first second of service
	AtStop     KillPoint = "stop"     // in the 60 ms after it was asked to stop
	AtSnapshot KillPoint = "snapshot" // in the 10 ms after the store of snapshots has changed
	AtRollover KillPoint = "rollover" // in the 10 ms after a file was added to the journal or removed
)

// killPoints are the weights with which pick chooses.
var killPoints = map[KillPoint]int{AtStart: 25, Early: 15, UnderLoad: 20, AtStop: 15, AtSnapshot: 15, AtRollover: 10}

// pick chooses a kill point at random.
func pick(r *rand.Rand) KillPoint {
	all := 0
	for _, weight := range killPoints {
		all += weight
	}
	n := r.IntN(all)
	for _, m := range slices.Sorted(maps.Keys(killPoints)) {
		if n -= killPoints[m]; n < 0 {
			return m
		}
	}
	panic("not reached")
}

// watching is how long await waits for a change of files.
const watching = 3 * time.Second

// await waits until a process that was just started reaches the kill point. It
// returns the point that was reached: UnderLoad when no file changed in time. It fails
// when the process ends before without having been asked to.
func (m KillPoint) await(ctx context.Context, h *Host, p *Process, r *rand.Rand) (KillPoint, error) {
	if m == AtStart {
		return m, pause(ctx, p, r, 100*time.Millisecond)
	}
	if err := h.Serves(ctx, p); err != nil {
		return m, err
	}
	changed := true
	switch m {
	case Early:
		return m, pause(ctx, p, r, 100*time.Millisecond)
	case AtStop:
		if err := pause(ctx, p, r, 400*time.Millisecond); err != nil {
			return m, err
		}
		p.Signal(syscall.SIGTERM)
		sleep(ctx, spread(r, 60*time.Millisecond))
		return m, ctx.Err()
	case AtSnapshot:
		changed = awaitChange(ctx, p, func() []string { return files(h.directories("OBJ_FH_SNAPSHOTS"), true) })
	case AtRollover:
		changed = awaitChange(ctx, p, func() []string { return files(h.directories("FH_JOURNAL"), false) })
	default:
		return m, pause(ctx, p, r, time.Second)
	}
	if !changed {
		m = UnderLoad
	}
	return m, pause(ctx, p, r, 10*time.Millisecond)
}

func spread(r *rand.Rand, most time.Duration) time.Duration {
	return time.Duration(r.Int64N(int64(most)))
}

// pause waits a random time, in which the process must not end.
func pause(ctx context.Context, p *Process, r *rand.Rand, most time.Duration) error {
	timer := time.NewTimer(spread(r, most))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-p.Ended():
		return withOutput(errors.New("the process ended without being asked to"), p)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// awaitChange reports whether the list has changed in time, and before the process
// has ended.
func awaitChange(ctx context.Context, p *Process, list func() []string) bool {
	ctx, cancel := context.WithTimeout(ctx, watching)
	defer cancel()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for before := list(); slices.Equal(before, list()); {
		select {
		case <-tick.C:
		case <-p.Ended():
			return false
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// files lists the content of the directories that match the patterns, with the size
// of each file if sizes is set. While the server replaces a file, there is one with
// another name.
func files(patterns []string, sizes bool) []string {
	var all []string
	for _, pattern := range patterns {
		directories, err := filepath.Glob(pattern)
		if err != nil {
			continue // the pattern is wrong: nothing will ever be seen
		}
		for _, dir := range directories {
			entries, err := os.ReadDir(dir)
			if err != nil {
				continue // it has just been removed
			}
			for _, e := range entries {
				name := filepath.Join(dir, e.Name())
				if info, err := e.Info(); sizes && err == nil {
					name = fmt.Sprint(name, info.Size())
				}
				all = append(all, name)
			}
		}
	}
	return all
}
