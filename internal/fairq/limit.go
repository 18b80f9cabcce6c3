package fairq

// Limit bounds how many items run at once, over all flows. The zero value bounds
// nothing. A limit belongs to one queue, which counts what waits and runs.
type Limit struct {
	Max    int  // running items; 0 for any number
	Paused bool // no item starts, whatever Max is

	waiting, running int
}

// Waiting is the number of items in the queue that have the limit.
func (l *Limit) Waiting() int { return l.waiting }

// Running is the number of items that hold a slot of the limit: popped, and not
// done yet.
func (l *Limit) Running() int { return l.running }

// haveRoom reports whether an item may start that takes a slot of each limit.
func haveRoom(limits []*Limit) bool {
	for _, l := range limits {
		if l.Paused || l.Max > 0 && l.running >= l.Max {
			return false
		}
	}
	return true
}
