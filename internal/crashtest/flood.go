package crashtest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
)

// Flood requests runs of one flow at a steady rate and waits for their results.
type Flood struct {
	Flow    string
	Workers int     // each waits for one result
	Rate    float64 // in 1/s; 0 as fast as results come

	done   atomic.Int64
	failed atomic.Int64
	mu     sync.Mutex
	took   []time.Duration // since the last Take
}

// Run sends requests until ctx ends. It returns the first answer that was not a result.
func (f *Flood) Run(ctx context.Context, nc *nats.Conn) error {
	began, turn := time.Now(), atomic.Int64{}
	var first atomic.Pointer[error]
	var working sync.WaitGroup
	for range f.Workers {
		working.Go(func() {
			for ctx.Err() == nil {
				due := time.Now()
				if f.Rate > 0 {
					due = began.Add(time.Duration(float64(turn.Add(1)) / f.Rate * float64(time.Second)))
					sleep(ctx, time.Until(due))
				}
				if err := f.ask(ctx, nc); err != nil && ctx.Err() == nil {
					f.failed.Add(1)
					first.CompareAndSwap(nil, &err)
					continue
				}
				f.note(time.Since(due))
			}
		})
	}
	working.Wait()
	if err := first.Load(); err != nil {
		return *err
	}
	return nil
}

func (f *Flood) ask(ctx context.Context, nc *nats.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	reply, err := nc.RequestMsgWithContext(ctx, &nats.Msg{
		Subject: "fh.v1.api.run." + f.Flow, Data: []byte(`{"n":1}`), Header: nats.Header{"Fh-Wait": {"30s"}},
	})
	if err != nil {
		return err
	}
	var got struct{ State string }
	if err := json.Unmarshal(reply.Data, &got); err != nil {
		return err
	}
	if got.State != "succeeded" {
		return fmt.Errorf("the answer is %s", reply.Data)
	}
	return nil
}

func (f *Flood) note(d time.Duration) {
	f.done.Add(1)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.took = append(f.took, d)
}

// Done returns the number of results, and of failed requests, so far.
func (f *Flood) Done() (results, failed int64) { return f.done.Load(), f.failed.Load() }

// Take returns the median and the 99th percentile of the times from the due time of a
// request to its result, for the results since the last call.
func (f *Flood) Take() (median, p99 time.Duration) {
	f.mu.Lock()
	took := f.took
	f.took = nil
	f.mu.Unlock()
	if len(took) == 0 {
		return 0, 0
	}
	slices.Sort(took)
	return took[len(took)/2], took[len(took)*99/100]
}
