package torture

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

// Moment is when a process is killed.
type Moment string

// The moments. Each is spread at random over what it names.
const (
	AtStart    Moment = "start"    // in the first 100 ms of the process
	Early      Moment = "early"    // in the first 100 ms of service, while runs are taken up again
	UnderLoad  Moment = "load"     // in the first second of service
	AtStop     Moment = "stop"     // in the 60 ms after it was asked to stop
	AtSnapshot Moment = "snapshot" // in the 10 ms after the store of snapshots has changed
	AtRollover Moment = "rollover" // in the 10 ms after the journal has got a new file, or has lost one
)

// moments says how often each comes.
var moments = map[Moment]int{AtStart: 25, Early: 15, UnderLoad: 20, AtStop: 15, AtSnapshot: 15, AtRollover: 10}

// pick gives a moment.
func pick(r *rand.Rand) Moment {
	all := 0
	for _, weight := range moments {
		all += weight
	}
	n := r.IntN(all)
	for _, m := range slices.Sorted(maps.Keys(moments)) {
		if n -= moments[m]; n < 0 {
			return m
		}
	}
	panic("not reached")
}

// watching is how long a process is given for a change of its files to come.
const watching = 3 * time.Second

// await waits for the moment in the life of a process that has just been started.
// It gives the moment that it has come to: a change of files that does not come in
// time leaves one under load. It fails when the process ends before, and was not
// asked to.
func (m Moment) await(ctx context.Context, h *Host, p *Process, r *rand.Rand) (Moment, error) {
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
		changed = awaitChange(ctx, p, func() []string { return files(h.folders("OBJ_FH_SNAPSHOTS"), true) })
	case AtRollover:
		changed = awaitChange(ctx, p, func() []string { return files(h.folders("FH_JOURNAL"), false) })
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
		return withOutput(errors.New("the process has ended by itself"), p)
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

// files lists what is in the folders that match the patterns, with the size of
// each file if that is asked for. Of a file that the server replaces there is one
// of another name meanwhile.
func files(patterns []string, sizes bool) []string {
	var all []string
	for _, pattern := range patterns {
		folders, err := filepath.Glob(pattern)
		if err != nil {
			continue // the pattern is wrong: nothing will ever be seen
		}
		for _, folder := range folders {
			entries, err := os.ReadDir(folder)
			if err != nil {
				continue // it has just been removed
			}
			for _, e := range entries {
				name := filepath.Join(folder, e.Name())
				if info, err := e.Info(); sizes && err == nil {
					name = fmt.Sprint(name, info.Size())
				}
				all = append(all, name)
			}
		}
	}
	return all
}
