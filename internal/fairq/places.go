package fairq

import (
	"context"
	"slices"
	"sync"
)

// Places bounds what is under way. A call computes in a place; while it waits for
// something, others may compute in its place, and it stays in flight. Each of the two has
// a bound. A flow that has nothing under way is admitted above a bound, up to twice the
// bound: whoever is alone gets everything, and the first call of a flow never waits behind
// the long ones of others.
//
// Places are safe for concurrent use.
type Places struct {
	freed    func()
	admitted func(flow string) bool // admits

	mu        sync.Mutex
	workers   int // calls that compute
	inFlight  int // calls that compute or wait
	computing int
	waiting   int
	flows     map[string]*flowPlaces // of those with calls
	claims    []*claim               // of calls that want to compute again, in order
	spare     *flowPlaces            // of a flow without calls, for the next
}

// flowPlaces is what one flow has under way.
type flowPlaces struct {
	flow      string
	computing int
	waiting   int
	holding   int // of those that wait: how many hold back the flow's next calls
}

// claim is a call that waits for a place to compute in again.
type claim struct {
	at      *Place
	granted chan struct{}
}

// NewPlaces makes places. With 0 workers, nothing is admitted. freed is called, from any
// goroutine, when calls may be admitted that could not be before, except after
// [Place.Exit]; it must not block. nil: nobody wants to know.
func NewPlaces(workers, inFlight int, freed func()) *Places {
	if freed == nil {
		freed = func() {}
	}
	p := &Places{freed: freed, workers: workers, inFlight: inFlight, flows: map[string]*flowPlaces{}}
	p.admitted = p.admits
	return p
}

// Set changes the bounds. Calls under way are not affected.
func (p *Places) Set(workers, inFlight int) {
	p.mu.Lock()
	p.workers, p.inFlight = workers, inFlight
	p.grant()
	p.mu.Unlock()
	p.freed()
}

// Bounds are the present bounds.
func (p *Places) Bounds() (workers, inFlight int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.workers, p.inFlight
}

// Count is how many calls compute, and how many are in flight but wait.
func (p *Places) Count() (computing, waiting int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.computing, p.waiting
}

// Empty reports whether nothing is under way. Places keep nothing then.
func (p *Places) Empty() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.computing+p.waiting+len(p.flows)+len(p.claims) == 0
}

// Admits reports whether a call of a flow may begin now.
func (p *Places) Admits(flow string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.admits(flow)
}

// Refusal is why no call of a flow begins now.
type Refusal int

// Refusals. The first that applies counts.
const (
	Admitted     Refusal = iota // no refusal
	HeldBack                    // a call of the flow waits for what the next ones would need
	NoWorker                    // as many calls compute as may
	InFlightFull                // as many calls are in flight as may
)

// Refusal is why no call of a flow begins now, with the calls that its bound counts, and
// the bound: those that compute for HeldBack, too.
func (p *Places) Refusal(flow string) (why Refusal, present, bound int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if why = p.refusal(flow); why == InFlightFull {
		return why, p.computing + p.waiting, p.inFlight
	}
	return why, p.computing, p.workers
}

// admits is called with the lock held, as are all below that do not lock.
func (p *Places) admits(flow string) bool { return p.refusal(flow) == Admitted }

func (p *Places) refusal(flow string) Refusal {
	var own flowPlaces // none
	if of := p.flows[flow]; of != nil {
		own = *of
	}
	switch {
	case own.holding > 0:
		return HeldBack
	case !admits(p.workers, p.computing, own.computing):
		return NoWorker
	case !admits(p.inFlight, p.computing+p.waiting, own.computing+own.waiting):
		return InFlightFull
	}
	return Admitted
}

// admits is the rule of both bounds: own of the present calls are the flow's.
func admits(bound, present, own int) bool {
	return present < bound || own == 0 && present < 2*bound
}

// Admit takes out of a queue the next item that may begin, and gives it a place.
func Admit[T any](p *Places, q *Queue[T]) (item T, at Place, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.computing >= 2*p.workers {
		return item, at, false
	}
	item, flow, ok := q.Pop(p.admitted)
	if ok {
		at = p.enter(flow)
	}
	return item, at, ok
}

// Place is that of one call. The zero value is not under way. The Places guard its
// fields.
type Place struct {
	of      *flowPlaces // nil: not under way
	waits   bool
	holding bool // back the other calls of its flow
}

// Enter lets a call of a flow begin to compute. It reports false, and changes nothing,
// when the call is not admitted now.
func (p *Places) Enter(at *Place, flow string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.admits(flow) {
		return false
	}
	*at = p.enter(flow)
	return true
}

func (p *Places) enter(flow string) Place {
	of := p.flows[flow]
	if of == nil {
		if of = p.spare; of == nil {
			of = new(flowPlaces)
		}
		p.spare, of.flow = nil, flow
		p.flows[flow] = of
	}
	of.computing++
	p.computing++
	return Place{of: of}
}

// Exit ends a call, whether it computes or waits. What the call does with its place
// afterwards has no effect.
func (p *Places) Exit(at *Place) {
	p.mu.Lock()
	defer p.mu.Unlock()
	of := at.of
	if of == nil {
		return
	}
	if at.waits {
		p.claims = slices.DeleteFunc(p.claims, func(c *claim) bool { return c.at == at })
		p.unhold(at)
		of.waiting--
		p.waiting--
	} else {
		of.computing--
		p.computing--
	}
	*at = Place{}
	if of.computing+of.waiting == 0 {
		delete(p.flows, of.flow)
		p.spare = of
	}
	p.grant()
}

// Leave lets others compute while a call waits. With hold, no other call of its flow
// begins meanwhile: it would need what this one waits for.
func (p *Places) Leave(at *Place, hold bool) {
	p.mu.Lock()
	if of := at.of; of != nil && !at.waits {
		of.computing--
		p.computing--
		of.waiting++
		p.waiting++
		at.waits = true
		if hold {
			at.holding = true
			of.holding++
		}
		p.grant()
	}
	p.mu.Unlock()
	p.freed()
}

// unhold lets other calls of a flow begin.
func (p *Places) unhold(at *Place) {
	if at.holding {
		at.holding = false
		at.of.holding--
	}
}

// Return lets a call that has left its place compute again, once there is one. Calls
// under way come before those that begin. It fails with the cause with which ctx ended;
// the call still waits then.
func (p *Places) Return(ctx context.Context, at *Place) error {
	c := &claim{at: at, granted: make(chan struct{})}
	p.mu.Lock()
	if at.of == nil || !at.waits {
		p.mu.Unlock()
		return nil
	}
	held := at.holding
	p.unhold(at)
	p.claims = append(p.claims, c)
	p.grant()
	p.mu.Unlock()
	if held {
		p.freed()
	}
	select {
	case <-c.granted:
		return nil
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-c.granted: // in the meantime
		return nil
	default:
	}
	p.claims = slices.DeleteFunc(p.claims, func(other *claim) bool { return other == c })
	return context.Cause(ctx)
}

// grant gives places to the calls that want to compute again, also while nothing is
// admitted, so that they come to their end.
func (p *Places) grant() {
	workers := max(p.workers, 1)
	for i := 0; i < len(p.claims) && p.computing < 2*workers; {
		c := p.claims[i]
		of := c.at.of
		if !admits(workers, p.computing, of.computing) {
			i++
			continue
		}
		p.claims = slices.Delete(p.claims, i, i+1)
		of.waiting--
		p.waiting--
		of.computing++
		p.computing++
		c.at.waits = false
		close(c.granted)
	}
}
