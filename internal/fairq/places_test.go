package fairq

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
)

// call is a call of the tests.
type call struct {
	flow  string
	place Place
	back  chan error // of Return, nil while the call is not on its way back
	stop  context.CancelFunc
}

func (c *call) returns(p *Places) {
	ctx, stop := context.WithCancel(context.Background())
	c.back, c.stop = make(chan error, 1), stop
	go func() { c.back <- p.Return(ctx, &c.place) }()
	synctest.Wait()
}

// checkPlaces compares the places with the calls that are under way.
func checkPlaces(p *Places, calls []*call) error {
	var computing, waiting int
	own := map[string]int{}
	claims := map[string]bool{}
	for _, c := range calls {
		own[c.flow] += 0
		switch {
		case c.place.waits:
			waiting++
			if c.back != nil {
				claims[c.flow] = true
			}
		default:
			computing++
			own[c.flow]++
		}
	}
	if n, m := p.Count(); n != computing || m != waiting {
		return fmt.Errorf("%d compute and %d wait, want %d and %d", n, m, computing, waiting)
	}
	workers := max(p.workers, 1)
	for flow := range claims {
		if computing < workers || own[flow] == 0 && computing < 2*workers {
			return fmt.Errorf("a call of %s waits for a place, and there is one", flow)
		}
	}
	if p.Empty() != (len(calls) == 0) {
		return errors.New("places keep something of calls that have ended, or nothing of those that have not")
	}
	return nil
}

// refusal states why no call of a flow begins, and the numbers of the bound.
func refusal(p *Places, calls []*call, flow string) (why Refusal, present, bound int) {
	var computing, ownComputing, own int
	held := false
	for _, c := range calls {
		if !c.place.waits {
			computing++
		}
		if c.flow == flow {
			own++
			if !c.place.waits {
				ownComputing++
			}
			held = held || c.place.holding
		}
	}
	all := len(calls)
	mayCompute := computing < p.workers || ownComputing == 0 && computing < 2*p.workers
	mayFly := all < p.inFlight || own == 0 && all < 2*p.inFlight
	switch {
	case held:
		return HeldBack, computing, p.workers
	case !mayCompute:
		return NoWorker, computing, p.workers
	case !mayFly:
		return InFlightFull, all, p.inFlight
	}
	return Admitted, computing, p.workers
}

func TestPlacesAgreeWithTheModel(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 7))
			freed := 0
			p := NewPlaces(rng.IntN(5), 1+rng.IntN(8), func() { freed++ })
			var calls []*call
			for step := range 300 {
				pick := func() *call {
					if len(calls) == 0 {
						return nil
					}
					return calls[rng.IntN(len(calls))]
				}
				before := freed
				switch c := pick(); rng.IntN(8) {
				case 0:
					p.Set(rng.IntN(5), 1+rng.IntN(8))
					if freed == before {
						t.Fatal("nobody learns that the bounds have changed")
					}
				case 1, 2, 3:
					flow := fmt.Sprint("f", rng.IntN(5))
					why, present, bound := refusal(p, calls, flow)
					if gotWhy, n, m := p.Refusal(flow); gotWhy != why || n != present || m != bound {
						t.Fatalf("seed %d, step %d: %s is refused by %d, %d of %d, want %d, %d of %d", seed, step, flow, gotWhy, n, m, why, present, bound)
					}
					want := why == Admitted
					if got := p.Admits(flow); got != want {
						t.Fatalf("seed %d, step %d: %s is admitted: %v, want %v", seed, step, flow, got, want)
					}
					added := &call{flow: flow}
					if p.Enter(&added.place, flow) != want {
						t.Fatalf("seed %d, step %d: Enter and Admits differ", seed, step)
					}
					if want {
						calls = append(calls, added)
					}
				case 4:
					if c != nil && !c.place.waits {
						p.Leave(&c.place, rng.IntN(3) == 0)
						if freed == before {
							t.Fatal("nobody learns that a place is free")
						}
					}
				case 5:
					if c != nil && c.place.waits && c.back == nil {
						c.returns(p)
					}
				case 6:
					if c != nil && c.back != nil {
						c.stop()
						synctest.Wait()
					}
				default:
					if c != nil {
						p.Exit(&c.place)
						if c.stop != nil {
							c.stop()
						}
						calls = without(calls, c)
						synctest.Wait()
					}
				}
				synctest.Wait()
				for _, c := range calls {
					collectReturn(c)
				}
				if err := checkPlaces(p, calls); err != nil {
					t.Fatalf("seed %d, step %d: %v", seed, step, err)
				}
			}
			for _, c := range calls {
				p.Exit(&c.place)
				if c.stop != nil {
					c.stop()
				}
			}
			if !p.Empty() {
				t.Fatalf("seed %d: places keep something of calls that have ended", seed)
			}
		})
	}
}

// collectReturn takes the end of a return.
func collectReturn(c *call) {
	if c.back == nil {
		return
	}
	select {
	case <-c.back:
		c.stop()
		c.back, c.stop = nil, nil
	default:
	}
}

// Whoever is alone gets everything, and the first call of another flow begins at once.
func TestNewcomersBegin(t *testing.T) {
	t.Parallel()
	p := NewPlaces(4, 512, nil)
	enter := func(flow string) bool { return p.Enter(new(Place), flow) }
	for range 4 {
		if !enter("loops") {
			t.Fatal("a flow that is alone does not get everything")
		}
	}
	if enter("loops") {
		t.Error("a flow is admitted beyond the bound")
	}
	for i := range 4 {
		if !enter(fmt.Sprint("newcomer", i)) {
			t.Errorf("newcomer %d waits for long calls", i)
		}
	}
	if enter("another") {
		t.Error("more than twice the bound is under way")
	}
}

// A place that is given back although its call still runs has no effect any more.
func TestAbandonedPlaces(t *testing.T) {
	t.Parallel()
	p := NewPlaces(1, 1, nil)
	var at Place
	p.Enter(&at, "f")
	p.Exit(&at)
	p.Leave(&at, true)
	if err := p.Return(t.Context(), &at); err != nil {
		t.Error(err)
	}
	p.Exit(&at)
	if !p.Empty() {
		t.Errorf("left are %+v", p)
	}
}

func BenchmarkPlaces(b *testing.B) {
	p := NewPlaces(4, 512, nil)
	var at Place
	b.ReportAllocs()
	for b.Loop() {
		if !p.Admits("f") || !p.Enter(&at, "f") {
			b.Fatal("not admitted")
		}
		p.Exit(&at)
	}
}
