package wasi

import (
	"encoding/binary"
	"math"
)

const (
	maxSubscriptions = 4096
	subscriptionSize = 48
	eventSize        = 32
)

// Types of events, eventtype.
const (
	eventClock uint8 = iota
	eventRead
	eventWrite
)

// subscription is one thing that a guest waits for, in its memory.
type subscription []byte

func (s subscription) userdata() uint64 { return binary.LittleEndian.Uint64(s) }
func (s subscription) event() uint8     { return s[8] }
func (s subscription) fd() uint32       { return binary.LittleEndian.Uint32(s[16:]) }
func (s subscription) clock() uint32    { return binary.LittleEndian.Uint32(s[16:]) }
func (s subscription) timeout() uint64  { return binary.LittleEndian.Uint64(s[24:]) }
func (s subscription) flags() uint16    { return binary.LittleEndian.Uint16(s[40:]) }

// pollOneoff waits for the first of what is subscribed to. Only a clock and a file that is
// pending take time: streams and other files are ready at once.
func (p *Process) pollOneoff(m memory, a []uint64) errno {
	count, result := uint32(a[2]), uint32(a[3])
	if count == 0 || count > maxSubscriptions {
		return einval
	}
	in, e := m.view(uint32(a[0]), uint64(count)*subscriptionSize)
	if e != 0 {
		return e
	}
	out, e := m.view(uint32(a[1]), uint64(count)*eventSize)
	if e != 0 {
		return e
	}
	if _, e := m.view(result, 4); e != 0 {
		return e
	}
	now := instant{process: p}
	for {
		wait, pending, e := now.nearest(in)
		if e != 0 {
			return e
		}
		switch {
		case wait == 0:
		case pending && p.Await != nil:
			if wait == math.MaxInt64 {
				wait = -1
			}
			now.passed += p.Await(wait)
			continue // a file may be ready, or the time is up
		case p.Sleep != nil:
			p.Sleep(wait)
		}
		return m.putUint32(result, now.report(in, out, wait))
	}
}

// isPending reports whether a file is not ready to be read.
func (p *Process) isPending(fd uint32) bool {
	d, e := p.lookup(fd)
	if e != 0 {
		return false
	}
	file, ok := d.file.(Pending)
	return ok && file.Pending()
}

// instant is when a poll began, and what has passed since. Each clock is read at most once,
// when a subscription is about it.
type instant struct {
	process *Process
	passed  int64 // nanoseconds
	known   [clocks]bool
	value   [clocks]int64
}

func (i *instant) of(clock uint32) int64 {
	if !i.known[clock] {
		i.known[clock], i.value[clock] = true, i.process.now(clock)
	}
	return i.value[clock]
}

// until reports how many nanoseconds after the instant something happens.
func (i *instant) until(s subscription) (int64, errno) {
	const absolute = 1
	switch s.event() {
	case eventClock:
	case eventRead:
		if i.process.isPending(s.fd()) {
			return math.MaxInt64, 0
		}
		return 0, 0
	case eventWrite:
		return 0, 0
	default:
		return 0, einval
	}
	switch {
	case s.clock() >= clocks || s.flags()&^absolute != 0:
		return 0, einval
	case s.flags() == 0: // any clock does: all of them go equally fast
		return max(int64(min(s.timeout(), math.MaxInt64))-i.passed, 0), 0
	case !i.process.hasClock(s.clock()):
		return 0, einval
	}
	now := uint64(max(i.of(s.clock())+i.passed, 0))
	if s.timeout() <= now {
		return 0, 0
	}
	return int64(min(s.timeout()-now, math.MaxInt64)), 0
}

// nearest reports when the first thing happens, and whether a file is among those that have
// not: of that, nothing is known.
func (i *instant) nearest(in []byte) (wait int64, pending bool, e errno) {
	wait = math.MaxInt64
	for ; len(in) > 0; in = in[subscriptionSize:] {
		s := subscription(in)
		w, e := i.until(s)
		if e != 0 {
			return 0, false, e
		}
		wait = min(wait, w)
		pending = pending || s.event() == eventRead && w > 0
	}
	return wait, pending, 0
}

// report writes an event for each subscription that has come true and reports how
// many those are. Events may overwrite subscriptions, also with nonsense, when
// the guest has put them in the same place.
func (i *instant) report(in, out []byte, wait int64) (events uint32) {
	for ; len(in) > 0; in = in[subscriptionSize:] {
		s := subscription(in)
		if w, e := i.until(s); e != 0 || w > wait {
			continue
		}
		var fault errno
		if s.event() != eventClock {
			_, fault = i.process.lookup(s.fd())
		}
		var event [eventSize]byte
		binary.LittleEndian.PutUint64(event[0:], s.userdata())
		binary.LittleEndian.PutUint16(event[8:], uint16(fault))
		event[10] = s.event()
		copy(out[events*eventSize:], event[:])
		events++
	}
	return events
}
