package host

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// newTestPool makes a pool without idle instances.
func newTestPool(instances int, bytes int64, queue int) *pool {
	return newPool(&Config{Instances: instances, Memory: bytes, Queue: queue})
}

// hold uses the pool until release is closed.
func hold(t *testing.T, p *pool, image *image, bytes int64, release <-chan struct{}, used func()) {
	t.Helper()
	go func() {
		err := p.use(t.Context(), image, bytes, func(*lease) {
			used()
			<-release
		})
		if err != nil {
			t.Error(err)
		}
	}()
	synctest.Wait()
}

func TestShareOfAModule(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]int{0: 0, 1: 1, 2: 1, 3: 2, 4: 3, 8: 6, 1024: 768} {
		if got := threeQuarters(n); got != want {
			t.Errorf("of %d: %d, want %d", n, got, want)
		}
	}
}

func TestPoolAdmitsCallsOfAModuleInOrderOfArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, one := newTestPool(8, 100, 10), &image{}
		admitted := make(chan int, 4)
		gates := make([]chan struct{}, 4)
		for i, bytes := range []int64{80, 95, 10, 95} { // the third would fit beside the first
			gates[i] = make(chan struct{})
			hold(t, p, one, bytes, gates[i], func() { admitted <- i })
		}
		for i, gate := range gates {
			if got := <-admitted; got != i {
				t.Errorf("call %d was admitted, want %d", got, i)
			}
			if len(admitted) > 0 {
				t.Errorf("call %d was admitted beside call %d", <-admitted, i)
			}
			close(gate)
			synctest.Wait()
		}
	})
}

func TestPoolBoundsPlacesAndQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, release := newTestPool(2, 100, 2), make(chan struct{})
		var running atomic.Int32
		a, b, c := &image{}, &image{}, &image{}
		for _, image := range []*image{a, b, a, c} {
			hold(t, p, image, 0, release, func() { running.Add(1) })
		}
		if n := running.Load(); n != 2 {
			t.Errorf("%d run", n)
		}
		if err := p.use(t.Context(), &image{}, 0, func(*lease) { t.Error("overtook") }); !errors.Is(err, errBusy) {
			t.Errorf("full queue: %v", err)
		}
		close(release)
		synctest.Wait()
	})
}

// A module whose calls never end takes neither all places nor all of the queue.
func TestPoolKeepsPlacesFromASlowModule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, release := newTestPool(4, 100, 8), make(chan struct{})
		slow, quick := &image{}, &image{}
		var running atomic.Int32
		for range 3 + 6 {
			hold(t, p, slow, 0, release, func() { running.Add(1) })
		}
		if n := running.Load(); n != 3 {
			t.Errorf("%d calls of the slow module run, want three of four", n)
		}
		if err := p.use(t.Context(), slow, 0, func(*lease) {}); !errors.Is(err, errBusy) {
			t.Errorf("the slow module has more than its share of the queue: %v", err)
		}
		for range 100 {
			if err := p.use(t.Context(), quick, 0, func(*lease) {}); err != nil {
				t.Fatal(err)
			}
		}
		close(release)
		synctest.Wait()
	})
}

// Among modules the one with the fewest running calls is next, whoever came first.
func TestPoolIsFairBetweenModules(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, many, few := newTestPool(4, 100, 100), &image{}, &image{}
		gate := make(chan struct{})
		var mu sync.Mutex
		var order []string
		note := func(name string) func() {
			return func() {
				mu.Lock()
				defer mu.Unlock()
				order = append(order, name)
			}
		}
		for range 10 {
			hold(t, p, many, 0, gate, note("many"))
		}
		for range 4 {
			hold(t, p, few, 0, gate, note("few"))
		}
		if got := strings.Join(order, " "); got != "many many many few" {
			t.Errorf("admitted at first: %s", got)
		}
		for range 10 {
			gate <- struct{}{}
			synctest.Wait()
		}
		if got := slices.Index(order[4:], "few"); got > 2 {
			t.Errorf("the other module waits for %d calls: %v", got, order)
		}
		close(gate)
		synctest.Wait()
	})
}

// A call that waits for much memory is overtaken by those that need little, but
// not forever.
func TestPoolDoesNotStarveLargeCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, large, small := newTestPool(8, 100, 1000), &image{}, &image{}
		first := make(chan struct{})
		hold(t, p, small, 40, first, func() {})
		var admitted, overtook atomic.Int32
		done := make(chan struct{})
		hold(t, p, large, 80, done, func() { admitted.Store(overtook.Load()) })
		gate := make(chan struct{})
		for range 500 {
			hold(t, p, small, 1, gate, func() { overtook.Add(1) })
		}
		close(gate)
		synctest.Wait()
		if n := overtook.Load(); n == 0 || n > maxPassed+8 {
			t.Errorf("%d calls overtook the large one", n)
		}
		close(first)
		synctest.Wait()
		if admitted.Load() == 0 {
			t.Error("the large call did not get its turn")
		}
		close(done)
		synctest.Wait()
	})
}

func TestPoolForgetsThoseWhoGiveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, release, one := newTestPool(8, 100, 10), make(chan struct{}), &image{}
		hold(t, p, one, 60, release, func() {})
		gone := errors.New("gone")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, gone)
		defer cancel()
		small := make(chan struct{})
		go func() {
			time.Sleep(time.Millisecond) // behind the large one
			if err := p.use(t.Context(), one, 10, func(*lease) { close(small) }); err != nil {
				t.Error(err)
			}
		}()
		if err := p.use(ctx, one, 90, func(*lease) { t.Error("there is no room") }); !errors.Is(err, gone) {
			t.Errorf("error %v", err)
		}
		<-small // nobody is in its way any more
		close(release)
		synctest.Wait()
	})
}

func TestLeaseGivesBackAllThatItCovered(t *testing.T) {
	t.Parallel()
	p, one := newTestPool(1, 100, 0), &image{}
	func() {
		defer func() { recover() }()
		p.use(t.Context(), one, 40, func(l *lease) {
			if !l.cover(100) || l.cover(101) || !l.cover(30) {
				t.Error("a lease does not keep to the pool's bytes")
			}
			panic("the sandbox broke")
		})
	}()
	if err := p.use(t.Context(), one, 100, func(*lease) {}); err != nil {
		t.Error(err)
	}
}

func TestPoolUnderLoadStaysWithinItsBounds(t *testing.T) {
	t.Parallel()
	const instances, total = 4, 1000
	p := newTestPool(instances, total, 1000)
	images := []*image{{}, {}, {}}
	var mu sync.Mutex
	var running, held int64
	change := func(n, bytes int64) {
		mu.Lock()
		defer mu.Unlock()
		running, held = running+n, held+bytes
		if running > instances || held > total {
			t.Errorf("%d instances with %d bytes", running, held)
		}
	}
	var calls sync.WaitGroup
	for n := range 300 {
		calls.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), rand.N(5*time.Millisecond))
			defer cancel()
			bytes, more := rand.Int64N(500), rand.Int64N(500)
			p.use(ctx, images[n%len(images)], bytes, func(l *lease) {
				change(1, bytes)
				if !l.cover(bytes + more) {
					more = 0
				}
				change(0, more)
				time.Sleep(rand.N(100 * time.Microsecond))
				change(-1, -bytes-more)
			})
		})
	}
	calls.Wait()
	if p.places != instances || p.bytes != total || p.waiting != 0 {
		t.Errorf("in the end %d places, %d bytes, %d waiting", p.places, p.bytes, p.waiting)
	}
	for _, l := range p.lines {
		if l.running != 0 || l.waiting.Len() != 0 {
			t.Errorf("a module has %d running, %d waiting", l.running, l.waiting.Len())
		}
	}
}
