package host

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// hold uses the pool until release is closed.
func hold(t *testing.T, p *pool, bytes int64, release <-chan struct{}, used func()) {
	t.Helper()
	go func() {
		err := p.use(t.Context(), bytes, func(*lease) {
			used()
			<-release
		})
		if err != nil {
			t.Error(err)
		}
	}()
	synctest.Wait()
}

func TestPoolAdmitsInOrderOfArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(8, 100, 10)
		admitted := make(chan int, 4)
		gates := make([]chan struct{}, 4)
		for i, bytes := range []int64{80, 95, 10, 95} { // the third would fit beside the first
			gates[i] = make(chan struct{})
			hold(t, p, bytes, gates[i], func() { admitted <- i })
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

func TestPoolBoundsInstancesAndQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, release := newPool(2, 100, 1), make(chan struct{})
		var running atomic.Int32
		for range 3 {
			hold(t, p, 0, release, func() { running.Add(1) })
		}
		if n := running.Load(); n != 2 {
			t.Errorf("%d run", n)
		}
		if err := p.use(t.Context(), 0, func(*lease) { t.Error("overtook") }); !errors.Is(err, errBusy) {
			t.Errorf("full queue: %v", err)
		}
		close(release)
		synctest.Wait()
	})
}

func TestPoolForgetsThoseWhoGiveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, release := newPool(8, 100, 10), make(chan struct{})
		hold(t, p, 60, release, func() {})
		gone := errors.New("gone")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, gone)
		defer cancel()
		small := make(chan struct{})
		go func() {
			time.Sleep(time.Millisecond) // behind the large one
			if err := p.use(t.Context(), 10, func(*lease) { close(small) }); err != nil {
				t.Error(err)
			}
		}()
		if err := p.use(ctx, 90, func(*lease) { t.Error("there is no room") }); !errors.Is(err, gone) {
			t.Errorf("error %v", err)
		}
		<-small // nobody is in its way any more
		close(release)
		synctest.Wait()
	})
}

func TestLeaseGivesBackAllThatItGrew(t *testing.T) {
	t.Parallel()
	p := newPool(1, 100, 0)
	func() {
		defer func() { recover() }()
		p.use(t.Context(), 40, func(l *lease) {
			if !l.grow(60) || l.grow(1) {
				t.Error("grow does not keep to the pool's bytes")
			}
			panic("the sandbox broke")
		})
	}()
	if err := p.use(t.Context(), 100, func(*lease) {}); err != nil {
		t.Error(err)
	}
}

func TestPoolUnderLoadStaysWithinItsBounds(t *testing.T) {
	t.Parallel()
	const instances, total = 3, 1000
	p := newPool(instances, total, 1000)
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
	for range 200 {
		calls.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), rand.N(5*time.Millisecond))
			defer cancel()
			bytes, more := rand.Int64N(500), rand.Int64N(500)
			p.use(ctx, bytes, func(l *lease) {
				change(1, bytes)
				if !l.grow(more) {
					more = 0
				}
				change(0, more)
				time.Sleep(rand.N(100 * time.Microsecond))
				change(-1, -bytes-more)
			})
		})
	}
	calls.Wait()
	if p.instances != instances || p.bytes != total || p.waiting.Len() != 0 {
		t.Errorf("in the end %d instances, %d bytes, %d waiting", p.instances, p.bytes, p.waiting.Len())
	}
}
