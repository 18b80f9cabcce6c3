package run

import "strconv"

// HeaderHops is of messages that flowhost publishes because of a run: the hops of the
// message that started the run, and its own. Absent, it is 0.
const HeaderHops = "Fh-Hops"

// MaxHops is how many hops a message may have that starts a run: flows that start
// each other through messages come to an end there.
const MaxHops = 16

// HopsOfEvent is what an event counts. A run has several events, so that flows which
// listen to them would multiply: with events, two runs are all that follow on one.
const HopsOfEvent = MaxHops / 2

// maxCount bounds the number in the header, so that sums stay small.
const maxCount = 1 << 20

// Hops is how many hops led to the trigger. Nobody gains by a header that cannot be
// read: it is refused.
func (t *Trigger) Hops() (int, error) {
	n, ok := count(t.Headers[HeaderHops])
	switch {
	case !ok:
		return MaxHops + 1, Requestf(RequestHeader, "header %s is not one number: leave it out, flowhost sets it in what it publishes", HeaderHops)
	case n > MaxHops:
		return n, Requestf(RequestLoop, "header %s counts %d messages that flowhost published in a chain, and %d is the limit: end the loop of flows that start each other through messages", HeaderHops, n, MaxHops)
	}
	return n, nil
}

// Onward are the headers of a trigger that follows on this one within flowhost.
func (t *Trigger) Onward() map[string][]string {
	if hops, _ := t.Hops(); hops > 0 {
		return map[string][]string{HeaderHops: {strconv.Itoa(hops)}}
	}
	return nil
}

// count reads the values of a header: none, or one decimal number.
func count(values []string) (int, bool) {
	if len(values) == 0 {
		return 0, true
	}
	n, err := strconv.ParseUint(values[0], 10, 32)
	if err != nil || len(values) > 1 || n > maxCount {
		return 0, false
	}
	return int(n), true
}
