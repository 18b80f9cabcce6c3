package engine

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/flowhost/flowhost/engine/memory"
	"github.com/flowhost/flowhost/run"
)

// A stream that has lost its end gives numbers again. Requests of what it stored
// since are accepted, and decided once.
func TestPositionsThatAreGivenAgain(t *testing.T) {
	t.Parallel()
	set := load(t, keysHCL)
	synctest.Test(t, func(t *testing.T) {
		config := Config{Journal: memory.NewJournal()}
		begin := time.Now()
		at := func(seq uint64, after time.Duration) run.Position {
			return run.Position{Source: "s", Seq: seq, At: begin.Add(after)}
		}
		r := boot(t, config, set)
		send := func(p run.Position, accepted bool) {
			t.Helper()
			request := keyed("f", "", `{}`)
			request.Position = p
			if receipt, err := r.Submit(t.Context(), request); err != nil || receipt.Accepted != accepted {
				t.Errorf("%+v is answered with %+v, %v", p, receipt, err)
			}
		}
		send(at(7, time.Second), true)
		send(at(8, 2*time.Second), true)
		for range 2 {
			send(at(6, time.Second), false)
			send(at(8, 2*time.Second), false)
			r.stop()
			r = boot(t, config, set)
		}
		send(at(4, 3*time.Second), true)
		if err := r.Decide(t.Context(), at(5, 3*time.Second)); err != nil {
			t.Error(err)
		}
		for range 2 {
			if mark, err := r.Watermark(t.Context(), "s"); err != nil || mark.Seq != 5 || !mark.At.Equal(begin.Add(3*time.Second)) {
				t.Errorf("the watermark is %+v, %v", mark, err)
			}
			send(at(4, 3*time.Second), false)
			send(at(5, 3*time.Second), false)
			r.stop()
			r = boot(t, config, set)
		}
		send(at(6, 3*time.Second), true)
		r.stop()
	})
}
