package intake

import (
	"fmt"
	"sync"

	"github.com/flowhost/flowhost/bus/internal/jskit"
)

// Bounds of requests that have a place in a [queue] or wait for one. Further ones are rejected.
const (
	queueLength = 64 << 10
	queueBytes  = 16 * jskit.MaxPayload
	queueShare  = 4 // a client's connection may have one of so many of the above
	placeShare  = 2 // and one of so many of the places

	// A request takes a place for each so many bytes, as long as they are no more than one
	// of so many of all: a processor is busy with a large one for about 10 ms, and those
	// that are handled at a time share the processors with the engine.
	placeBytes = 64 << 10
	largeShare = 2
)

// caller is somebody whose requests wait in a line of their own.
type caller struct {
	name     string
	operator bool // finds the reserve
}

// queue gives places to what callers ask for: to what one caller asks for in that
// order, to callers in turns. Clients leave a part of everything to the operator, who
// has every other turn while both wait. It never blocks.
type queue struct {
	places int
	begin  func(func()) bool // starts a goroutine, or returns false at the end

	mu    sync.Mutex
	taken int
	load  load // of all lines
	lines map[caller]*line
	turns [2][]*line // the lines of clients, and of the operator, that may take a place
	last  int        // whose turn was the last
}

// load is how much has a place or waits for one.
type load struct{ requests, bytes int }

func (l *load) add(size int) { l.requests, l.bytes = l.requests+1, l.bytes+size }

func (l *load) remove(size int) { l.requests, l.bytes = l.requests-1, l.bytes-size }

// room reports whether one more fits into a part of what a queue may hold. The first
// one always does.
func (l load) room(size, part, of int) bool {
	return l.requests == 0 || l.requests < queueLength*part/of && l.bytes+size <= queueBytes*part/of
}

// line is what one caller has in the queue.
type line struct {
	caller caller
	taken  int // places
	load   load
	jobs   []job // that wait
	turn   bool  // it is among the turns
}

// job is something to be done in a place. One of its functions is called, once.
type job struct {
	size int // in bytes
	do   func(*slot)
	not  func(error) // a *fullError, or errStopping
}

// slot is what a job has of the places of a queue. A nil slot is none.
type slot struct {
	queue  *queue
	line   *line
	size   int
	places int
	left   bool // guarded by queue.mu
}

// placesOf is how many places a job of so many bytes takes.
func (q *queue) placesOf(size int) int { return min(1+size/placeBytes, max(q.places/largeShare, 1)) }

// fullError turns a request away.
type fullError struct {
	whose string
	load  load
}

func (e *fullError) Error() string {
	return fmt.Sprintf("%d requests of %s, %d bytes, are not answered yet, which is the limit: try again later", e.load.requests, e.whose, e.load.bytes)
}

func newQueue(places int, begin func(func()) bool) *queue {
	return &queue{places: places, begin: begin, lines: map[caller]*line{}}
}

// enter has a job done when it is its turn.
func (q *queue) enter(who caller, j job) {
	if err := q.append(who, j); err != nil {
		j.not(err)
		return
	}
	q.serve()
}

func (q *queue) append(who caller, j job) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.lines[who]
	if l == nil {
		l = &line{caller: who}
	}
	part := operatorShare
	if !who.operator {
		part--
		if !l.load.room(j.size, 1, queueShare) {
			return &fullError{"this connection", l.load}
		}
	}
	if !q.load.room(j.size, part, operatorShare) {
		return &fullError{"all connections", q.load}
	}
	q.lines[who] = l
	l.jobs = append(l.jobs, j)
	l.load.add(j.size)
	q.load.add(j.size)
	q.line(l)
	return nil
}

// line lets a line have a turn when something of it waits and may take a place.
func (q *queue) line(l *line) {
	if l.turn || len(l.jobs) == 0 || !l.caller.operator && l.taken >= max(q.places/placeShare, 1) {
		return
	}
	l.turn = true
	side := l.caller.side()
	q.turns[side] = append(q.turns[side], l)
}

// side is the caller's among the turns.
func (c caller) side() int {
	if c.operator {
		return 1
	}
	return 0
}

// serve begins whatever can begin.
func (q *queue) serve() {
	for {
		j, s := q.next()
		if s == nil {
			return
		}
		if !q.begin(func() { defer s.leave(); j.do(s) }) {
			j.not(errStopping)
			s.free()
		}
	}
}

// next takes a place for the line whose turn it is, none when nothing can begin.
func (q *queue) next() (job, *slot) {
	q.mu.Lock()
	defer q.mu.Unlock()
	side := 1 - q.last
	if !q.open(side) {
		side = q.last
	}
	if !q.open(side) {
		return job{}, nil
	}
	l := q.turns[side][0]
	q.turns[side], q.last, l.turn = q.turns[side][1:], side, false
	j := l.jobs[0]
	l.jobs[0] = job{}
	l.jobs = l.jobs[1:]
	places := q.placesOf(j.size)
	l.taken += places
	q.taken += places
	q.line(l)
	return j, &slot{queue: q, line: l, size: j.size, places: places}
}

// open reports whether a line of the side waits and enough places are left for what is
// first in it.
func (q *queue) open(side int) bool {
	if len(q.turns[side]) == 0 {
		return false
	}
	left := q.places - q.taken
	if side == 0 {
		left -= q.places / operatorShare
	}
	return left >= q.placesOf(q.turns[side][0].jobs[0].size)
}

// leave gives the place to whoever is next. It may be called again.
func (s *slot) leave() {
	if s != nil && s.free() {
		s.queue.serve()
	}
}

func (s *slot) free() bool {
	q, l := s.queue, s.line
	q.mu.Lock()
	defer q.mu.Unlock()
	if s.left {
		return false
	}
	s.left = true
	q.taken -= s.places
	l.taken -= s.places
	q.load.remove(s.size)
	l.load.remove(s.size)
	q.line(l)
	if l.load.requests == 0 {
		delete(q.lines, l.caller)
	}
	return true
}

// end turns away whatever waits, once begin starts nothing more.
func (q *queue) end() {
	for _, j := range q.drop() {
		j.not(errStopping)
	}
}

func (q *queue) drop() (jobs []job) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for who, l := range q.lines {
		for _, j := range l.jobs {
			l.load.remove(j.size)
			q.load.remove(j.size)
		}
		jobs = append(jobs, l.jobs...)
		l.jobs, l.turn = nil, false
		if l.load.requests == 0 {
			delete(q.lines, who)
		}
	}
	q.turns = [2][]*line{}
	return jobs
}
