package intake

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/flowhost/flowhost/bus/internal/jskit"
)

// stall is a queue whose jobs stay in their places until they are let go.
type stall struct {
	*queue
	open bool
	done []string         // in the order in which they began
	in   map[string]*slot // by job
	away map[string]error
}

func newStall(places int) *stall {
	s := &stall{open: true, in: map[string]*slot{}, away: map[string]error{}}
	s.queue = newQueue(places, func(do func()) bool {
		if s.open {
			do()
		}
		return s.open
	})
	return s
}

func (s *stall) ask(who caller, name string, size int) {
	s.enter(who, job{
		size: size,
		do: func(at *slot) {
			s.done = append(s.done, name)
			s.in[name] = &slot{queue: at.queue, line: at.line, size: at.size, places: at.places}
			at.left = true // begin returns at once here, and the job goes on
		},
		not: func(err error) { s.away[name] = err },
	})
}

func (s *stall) wants(t *testing.T, done ...string) {
	t.Helper()
	if !slices.Equal(s.done, done) {
		t.Errorf("began %q, want %q", s.done, done)
	}
	s.done = nil
}

var (
	clientA, clientB = caller{name: "a"}, caller{name: "b"}
	theOperator      = caller{name: "o", operator: true}
)

// A large request takes as many places as small ones that would keep processors busy for as
// long, and no more than half of all.
func TestLargeRequestsTakeSeveralPlaces(t *testing.T) {
	t.Parallel()
	q := newStall(32)
	q.ask(clientA, "a0", 8<<20)
	q.ask(clientA, "a1", 8<<20)
	q.wants(t, "a0") // a connection has half
	q.ask(clientB, "b0", 200<<10)
	q.ask(clientB, "b1", 1)
	q.wants(t, "b0", "b1") // four places, and one
	q.ask(clientB, "b2", 8<<20)
	q.ask(theOperator, "o0", 8<<20)
	q.wants(t) // eleven are left
	q.in["a0"].leave()
	q.wants(t, "o0") // a large one of a client does not fit beside it
	q.in["o0"].leave()
	q.wants(t, "b2")
	q.in["b2"].leave()
	q.wants(t, "a1")
}

// A connection has half of the places, clients leave one to the operator, and whoever
// waits has a turn.
func TestTurns(t *testing.T) {
	t.Parallel()
	q := newStall(8)
	for i := range 7 {
		q.ask(clientA, fmt.Sprint("a", i), 1)
	}
	q.wants(t, "a0", "a1", "a2", "a3")
	for i := range 5 {
		q.ask(clientB, fmt.Sprint("b", i), 1)
	}
	q.wants(t, "b0", "b1", "b2")
	q.ask(theOperator, "o0", 1)
	q.wants(t, "o0")
	for i := range 4 {
		q.ask(theOperator, fmt.Sprint("o", i+1), 1)
	}
	q.wants(t)
	q.in["a0"].leave()
	q.wants(t, "o1") // the last place is the operator's
	q.in["o0"].leave()
	q.wants(t, "o2")
	q.in["a1"].leave()
	q.in["a2"].leave()
	q.wants(t, "o3", "o4")
	q.in["o1"].leave()
	q.wants(t)
	q.in["o1"].leave() // again
	q.wants(t)
	q.in["o2"].leave()
	q.in["o3"].leave()
	q.wants(t, "b3", "a4")
	for range 3 {
		for _, at := range q.in {
			at.leave()
		}
	}
	if q.load != (load{}) || q.taken != 0 || len(q.lines) != 0 {
		t.Errorf("an empty queue holds %+v, %d places, %d lines", q.load, q.taken, len(q.lines))
	}
}

// What is beyond the bounds is turned away: of a connection, of all clients, of all.
func TestQueueIsBounded(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ size, mine, clients, all int }{
		"requests": {0, queueLength / queueShare, queueLength / operatorShare * (operatorShare - 1), queueLength},
		"bytes":    {jskit.MaxPayload / 2, 2 * queueBytes / jskit.MaxPayload / queueShare, 2 * queueBytes / jskit.MaxPayload / operatorShare * (operatorShare - 1), 2 * queueBytes / jskit.MaxPayload},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := newStall(1)
			var taken int
			fill := func(who caller) (n int) {
				for {
					away := len(q.away)
					q.ask(who, fmt.Sprint(taken), tt.size)
					taken++
					if len(q.away) > away {
						return n
					}
					n++
				}
			}
			if n := fill(clientA); n != tt.mine {
				t.Errorf("a connection has %d, want %d", n, tt.mine)
			}
			sum := tt.mine
			for i := range 8 {
				sum += fill(caller{name: fmt.Sprint(i)})
			}
			if sum != tt.clients {
				t.Errorf("clients have %d, want %d", sum, tt.clients)
			}
			if sum += fill(theOperator); sum != tt.all {
				t.Errorf("all have %d, want %d", sum, tt.all)
			}
			for _, err := range q.away {
				var full *fullError
				if !errors.As(err, &full) {
					t.Fatalf("turned away with %v", err)
				}
			}
			q.open = false
			away := len(q.away)
			q.end()
			if n := len(q.away) - away; n != tt.all-1 {
				t.Errorf("%d of %d that waited are turned away at the end", n, tt.all-1)
			}
			q.ask(clientA, "late", 1)
			for _, at := range q.in {
				at.leave()
			}
			if !errors.Is(q.away["late"], errStopping) {
				t.Errorf("after the end: %v", q.away["late"])
			}
		})
	}
}

// A message as large as they may be is taken when nothing else is there.
func TestQueueTakesTheLargest(t *testing.T) {
	t.Parallel()
	q := newStall(1)
	q.ask(clientA, "huge", 2*queueBytes)
	q.wants(t, "huge")
}

// Each job has one end, whoever asks meanwhile and whenever it stops.
func TestQueueLosesNothing(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	closed := false
	var open, asking sync.WaitGroup
	q := newQueue(5, func(do func()) bool {
		mu.Lock()
		defer mu.Unlock()
		if !closed {
			open.Go(do)
		}
		return !closed
	})
	const callers, each = 8, 2000
	ends := make([]int, callers*each)
	for c := range callers {
		asking.Go(func() {
			for i := range each {
				who := caller{name: fmt.Sprint(c), operator: c%4 == 0}
				q.enter(who, job{do: func(s *slot) { ends[c*each+i]++; s.leave(); s.leave() }, not: func(error) { ends[c*each+i]++ }})
				if c == 7 && i == each/2 {
					mu.Lock()
					closed = true
					mu.Unlock()
					q.end()
				}
			}
		})
	}
	asking.Wait()
	q.end()
	open.Wait()
	for i, n := range ends {
		if n != 1 {
			t.Fatalf("job %d has %d ends", i, n)
		}
	}
	if q.taken != 0 || q.load != (load{}) || len(q.lines) != 0 {
		t.Errorf("left: %d places, %+v, %d lines", q.taken, q.load, len(q.lines))
	}
}

func BenchmarkQueue(b *testing.B) {
	q := newQueue(64, func(do func()) bool { do(); return true })
	b.ReportAllocs()
	for b.Loop() {
		q.enter(clientA, job{size: 100, do: func(*slot) {}, not: func(error) {}})
	}
}
