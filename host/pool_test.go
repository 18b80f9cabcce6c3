package host

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flowhost/flowhost/run"
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

// Calls that need as much as others are admitted in the order in which they come.
func TestPoolAdmitsCallsInOrderOfArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, one := newTestPool(8, 100, 10), &image{}
		admitted := make(chan int, 4)
		gates := make([]chan struct{}, 4)
		for i := range gates {
			gates[i] = make(chan struct{})
			hold(t, p, one, 80+int64(i), gates[i], func() { admitted <- i })
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

// place notes what a call does with the place that its engine has given to it.
type place struct {
	left     []run.WaitReason
	returned int
	free     chan struct{}
}

func (p *place) Leave(w run.WaitReason) { p.left = append(p.left, w) }

func (p *place) Return(ctx context.Context) error {
	p.returned++
	select {
	case <-p.free:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// A call that waits for memory lets others compute, and its time stands still until it
// computes again.
func TestTimeStandsStillWhileACallWaitsForMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, one, release := newTestPool(8, 100, 10), &image{}, make(chan struct{})
		hold(t, p, one, 60, release, func() {})
		at := &place{free: make(chan struct{})}
		own := new(callTime)
		own.begin(context.WithValue(t.Context(), run.PlaceKey{}, at), t.Context(), time.Second, 0)
		defer own.stop()
		began := time.Now()
		time.Sleep(400 * time.Millisecond)
		go func() {
			time.Sleep(time.Minute)
			close(release)
			time.Sleep(time.Minute)
			close(at.free)
		}()
		err := p.use(own, one, 90, func(*lease) {
			if deadline, _ := own.Deadline(); time.Since(began) != 2*time.Minute+400*time.Millisecond || time.Until(deadline) != 600*time.Millisecond {
				t.Errorf("it computes after %v, and has %v", time.Since(began), time.Until(deadline))
			}
			<-own.Done()
		})
		if err != nil || own.stood != 2*time.Minute || time.Since(began)-own.stood != time.Second || !errors.Is(context.Cause(own), run.ErrDeadline) {
			t.Errorf("%v, after %v, of which %v do not count: %v", err, time.Since(began), own.stood, context.Cause(own))
		}
		if !slices.Equal(at.left, []run.WaitReason{run.WaitMemory}) || at.returned != 1 {
			t.Errorf("%+v", at)
		}
	})
}

// A call that is canceled on its way back to a place gives its memory back.
func TestCallsThatAreCanceledOnTheirWayBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, one, release := newTestPool(8, 100, 10), &image{}, make(chan struct{})
		hold(t, p, one, 60, release, func() {})
		ctx, cancel := context.WithCancelCause(t.Context())
		own := new(callTime)
		own.begin(context.WithValue(ctx, run.PlaceKey{}, &place{}), t.Context(), time.Second, 0)
		defer own.stop()
		go func() {
			time.Sleep(time.Minute)
			close(release)
			time.Sleep(time.Minute)
			cancel(run.ErrCanceled)
		}()
		if err := p.use(own, one, 90, func(*lease) { t.Error("it computes without a place") }); !errors.Is(err, run.ErrCanceled) {
			t.Error(err)
		}
		if p.bytes != 100 || p.places != 8 || p.waiting.Len() != 0 {
			t.Errorf("%d bytes and %d places are free", p.bytes, p.places)
		}
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
	if p.places != instances || p.bytes != total || p.waiting.Len() != 0 {
		t.Errorf("in the end %d places, %d bytes, %d waiting", p.places, p.bytes, p.waiting.Len())
	}
	for _, l := range p.lines {
		if l.running != 0 || l.waiting != 0 {
			t.Errorf("a module has %d running, %d waiting", l.running, l.waiting)
		}
	}
}
