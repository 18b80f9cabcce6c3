package workers

import (
	"sync/atomic"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// More jobs than may wait, in bursts: each has one result, and workers end with the pool.
func TestPoolInBursts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now, most atomic.Int32
		gate := make(chan struct{})
		p := New(func(n int) (int, bool) {
			most.Store(max(most.Load(), now.Add(1)))
			<-gate
			now.Add(-1)
			return -n, true
		}, 8)
		for _, burst := range []int{1, 3 * maxIdle, 10, 2 * maxIdle} {
			sum := 0
			for n := range burst {
				p.Begin(n)
				sum += n
			}
			synctest.Wait()
			if int(now.Load()) != burst {
				t.Errorf("%d of %d jobs are under way", now.Load(), burst)
			}
			for range burst {
				gate <- struct{}{}
			}
			for range burst {
				sum += <-p.Results()
				p.Returned()
			}
			if sum != 0 || p.idle > maxIdle {
				t.Errorf("results and jobs differ by %d, %d workers wait", sum, p.idle)
			}
		}
		p.Begin(1)
		p.Close()
		close(gate)
		p.Wait()
	})
}

// Nothing waits for a worker whose job was abandoned, and it ends with the job.
func TestPoolAbandonsJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		p := New(func(wanted bool) (int, bool) {
			if !wanted {
				<-hang
			}
			return 1, wanted
		}, 0)
		p.Begin(false)
		p.Begin(true)
		<-p.Results()
		p.Returned()
		p.Abandon()
		p.Close()
		p.Wait()
		close(hang)
	})
}

func BenchmarkPool(b *testing.B) {
	p := New(func(n int) (int, bool) { return n, true }, 64)
	for b.Loop() {
		p.Begin(1)
		<-p.Results()
		p.Returned()
	}
	p.Close()
	p.Wait()
}
