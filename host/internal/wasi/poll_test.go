package wasi

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"testing"
)

// clockSubscription waits for a clock; fdSubscription for a descriptor.
func clockSubscription(userdata uint64, clock uint32, timeout uint64, flags uint16) []byte {
	s := make([]byte, subscriptionSize)
	binary.LittleEndian.PutUint64(s, userdata)
	s[8] = eventClock
	binary.LittleEndian.PutUint32(s[16:], clock)
	binary.LittleEndian.PutUint64(s[24:], timeout)
	binary.LittleEndian.PutUint16(s[40:], flags)
	return s
}

func fdSubscription(userdata uint64, event uint8, fd uint32) []byte {
	s := clockSubscription(userdata, fd, 0, 0)
	s[8] = event
	return s
}

// happened is an event.
type happened struct {
	userdata uint64
	fault    errno
	event    uint8
}

func events(b []byte) (list []happened) {
	for ; len(b) > 0; b = b[eventSize:] {
		list = append(list, happened{binary.LittleEndian.Uint64(b), errno(binary.LittleEndian.Uint16(b[8:])), b[10]})
	}
	return list
}

func TestPoll(t *testing.T) {
	t.Parallel()
	const absolute = 1
	const wall, monotonic = uint64(50e9), uint64(7_000)
	for name, c := range map[string]struct {
		subscriptions [][]byte
		slept         []int64
		events        []happened
	}{
		"a relative time":       {[][]byte{clockSubscription(1, 1, 500, 0)}, []int64{500}, []happened{{1, 0, 0}}},
		"of the wall clock":     {[][]byte{clockSubscription(1, 0, 500, 0)}, []int64{500}, []happened{{1, 0, 0}}},
		"no time":               {[][]byte{clockSubscription(1, 1, 0, 0)}, nil, []happened{{1, 0, 0}}},
		"for ever":              {[][]byte{clockSubscription(1, 1, math.MaxUint64, 0)}, []int64{math.MaxInt64}, []happened{{1, 0, 0}}},
		"an absolute time":      {[][]byte{clockSubscription(1, 1, monotonic+30, absolute)}, []int64{30}, []happened{{1, 0, 0}}},
		"of the wall clock too": {[][]byte{clockSubscription(1, 0, wall+40, absolute)}, []int64{40}, []happened{{1, 0, 0}}},
		"the end of time":       {[][]byte{clockSubscription(1, 0, math.MaxUint64, absolute)}, []int64{math.MaxInt64}, []happened{{1, 0, 0}}},
		"the past":              {[][]byte{clockSubscription(1, 0, wall-1, absolute), clockSubscription(2, 1, monotonic, absolute)}, nil, []happened{{1, 0, 0}, {2, 0, 0}}},
		"the nearest": {[][]byte{clockSubscription(1, 1, 90, 0), clockSubscription(2, 0, wall+20, absolute), clockSubscription(3, 1, monotonic+30, absolute)},
			[]int64{20}, []happened{{2, 0, 0}}},
		"some at once": {[][]byte{clockSubscription(1, 1, 20, 0), clockSubscription(2, 1, 30, 0), clockSubscription(3, 0, 20, 0)},
			[]int64{20}, []happened{{1, 0, 0}, {3, 0, 0}}},
		"stdin is ready": {[][]byte{clockSubscription(1, 1, 20, 0), fdSubscription(2, eventRead, 0)}, nil, []happened{{2, 0, eventRead}}},
		"so are others": {[][]byte{fdSubscription(1, eventWrite, 1), fdSubscription(2, eventRead, 3), clockSubscription(3, 1, 0, 0)},
			nil, []happened{{1, 0, eventWrite}, {2, 0, eventRead}, {3, 0, eventClock}}},
		"a bad descriptor": {[][]byte{fdSubscription(1, eventRead, 9), fdSubscription(2, eventWrite, math.MaxUint32), clockSubscription(3, 1, 1, 0)},
			nil, []happened{{1, ebadf, eventRead}, {2, ebadf, eventWrite}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var slept []int64
			g := newGuest(t, &Process{
				FS:       newMemFS(),
				Walltime: func() (int64, int32) { return int64(wall / 1e9), 0 }, Nanotime: func() int64 { return int64(monotonic) },
				Sleep: func(ns int64) { slept = append(slept, ns) },
			})
			in := slices.Concat(c.subscriptions...)
			for _, out := range []int{atResult, atData} { // events may go where the subscriptions are
				slept = nil
				g.put(atData, in)
				g.want(0, "poll_oneoff", atData, uint64(out), uint64(len(c.subscriptions)), atPath)
				if !slices.Equal(slept, c.slept) {
					t.Errorf("slept %v, want %v", slept, c.slept)
				}
				if got := events(g.memory()[out : out+eventSize*int(g.uint32(atPath))]); !slices.Equal(got, c.events) {
					t.Errorf("events %v, want %v", got, c.events)
				}
			}
		})
	}
}

func TestPollReadsEachClockOnce(t *testing.T) {
	t.Parallel()
	var wall, monotonic int64
	g := newGuest(t, &Process{
		Walltime: func() (int64, int32) { wall++; return wall, 0 },
		Nanotime: func() int64 { monotonic++; return monotonic },
	})
	g.put(atData, clockSubscription(1, 0, 10e9, 1), clockSubscription(2, 0, 20e9, 1), clockSubscription(2, 1, 20, 0))
	g.want(0, "poll_oneoff", atData, atResult, 3, atPath)
	if wall != 1 || monotonic != 0 {
		t.Errorf("the clocks were read %d and %d times, want 1 and 0", wall, monotonic)
	}
}

func TestPollRefuses(t *testing.T) {
	t.Parallel()
	g := newGuest(t, &Process{Nanotime: func() int64 { return 1 }, Sleep: func(int64) { t.Error("slept") }})
	g.want(einval, "poll_oneoff", atData, atResult, 0, atPath)
	g.want(einval, "poll_oneoff", atData, atResult, maxSubscriptions+1, atPath)
	g.want(einval, "poll_oneoff", atData, atResult, 1<<32-1, atPath)
	g.want(efault, "poll_oneoff", atData, atResult, maxSubscriptions, atPath) // more than its memory
	for what, s := range map[string][]byte{
		"an unknown event": fdSubscription(1, 3, 0),
		"an unknown clock": clockSubscription(1, 2, 5, 0),
		"an unknown flag":  clockSubscription(1, 1, 5, 2),
		"a missing clock":  clockSubscription(1, 0, 5, 1),
	} {
		g.put(atData, clockSubscription(0, 1, 7, 0), s)
		g.put(atResult, bytes.Repeat([]byte("?"), 2*eventSize))
		if e := g.call("poll_oneoff", atData, atResult, 2, atPath); e != einval {
			t.Errorf("%s answered %d", what, e)
		}
		if g.text(atResult, 2) != "??" {
			t.Errorf("%s wrote an event", what)
		}
	}
}
