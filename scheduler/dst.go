package scheduler

// DST determines what happens to local times that a change of a zone's offset by less
// than three hours skips or repeats. Larger changes are corrections of the
// clock, such as Samoa's missing day: in every mode, what they skip does not
// fire and what they repeat fires again.
type DST uint8

// The ways to treat skipped and repeated local times. All but DSTCron treat all
// expressions alike, also those that fire each hour or minute.
const (
	// DSTCron, the default, is ISC cron's way. A skipped time fires where the
	// gap ends, once for all that the gap skips; a repeated one fires at its
	// first pass. An expression whose minute or hour starts with * follows
	// elapsed time instead: it fires whenever the local clock matches.
	DSTCron  DST = iota
	DSTSkip      // skipped times do not fire; repeated ones fire at their first pass
	DSTShift     // skipped times fire later by the length of the gap, 02:30 at 03:30; repeated ones at their first pass
	DSTFirst     // skipped times fire where the gap ends; repeated ones at their first pass
	DSTLast      // skipped times fire where the gap ends; repeated ones at their last pass
	DSTBoth      // skipped times fire where the gap ends; repeated ones at both passes
)

var dstNames = [...]string{"cron", "skip", "shift", "first", "last", "both"}

// String is the name that [ParseDST] reads.
func (d DST) String() string {
	if int(d) < len(dstNames) {
		return dstNames[d]
	}
	return "unknown"
}

// ParseDST reads cron, skip, shift, first, last or both.
func ParseDST(name string) (DST, bool) {
	for d, n := range dstNames {
		if n == name {
			return DST(d), true
		}
	}
	return DSTCron, false
}

// treatment is a mode taken apart.
type treatment struct {
	gap  gap
	pass pass
}

// gap is what becomes of skipped times, pass which of the repeated ones fire.
type (
	gap  uint8
	pass uint8
)

const (
	gapLost gap = iota
	gapEnd
	gapShift
)

const (
	passAll pass = iota
	passFirst
	passLast
)

// treatment is what d means for a pattern.
func (d DST) treatment(p *pattern) treatment {
	switch d {
	case DSTSkip:
		return treatment{gapLost, passFirst}
	case DSTShift:
		return treatment{gapShift, passFirst}
	case DSTLast:
		return treatment{gapEnd, passLast}
	case DSTBoth:
		return treatment{gapEnd, passAll}
	case DSTCron:
		if p.elapsed {
			return treatment{gapLost, passAll}
		}
	}
	return treatment{gapEnd, passFirst}
}
