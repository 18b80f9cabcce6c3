package dag

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestTimeout(t *testing.T) {
	t.Parallel()
	waits := func(ctx context.Context, node int) error {
		select {
		case <-time.After(time.Minute):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	tests := []struct {
		name  string
		do    Func[int]
		after time.Duration // how long it takes
		late  bool
	}{
		{"in time", Timeout(time.Hour, waits), time.Minute, false},
		{"late", Timeout(time.Second, waits), time.Second, true},
		{"no limit", Timeout(0, waits), time.Minute, false},
		{"the inner one", Timeout(time.Hour, Timeout(time.Second, waits)), time.Second, true},
		{"the outer one", Timeout(time.Second, Timeout(time.Hour, waits)), time.Second, true},
		{"each attempt", Retry(3, nil, Timeout(time.Second, waits)), 3 * time.Second, true},
		{"all attempts", Timeout(2*time.Second+1, Retry(9, nil, Timeout(time.Second, waits))), 2*time.Second + 1, true},
		{"between attempts", Timeout(time.Minute, Retry(2, Doubling(time.Hour, time.Hour), Timeout(time.Second, waits))), time.Minute, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				err := tt.do(t.Context(), 0)
				if took := time.Since(began); took != tt.after {
					t.Errorf("took %v, want %v", took, tt.after)
				}
				var late *TimeoutError
				if errors.As(err, &late) != tt.late || errors.Is(err, context.DeadlineExceeded) != tt.late {
					t.Errorf("error %v", err)
				}
			})
		})
	}
}

// A nested timeout names the time that ran out.
func TestTimeoutNamesItsOwnTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		do := Timeout(time.Second, Timeout(time.Hour, func(ctx context.Context, _ int) error { <-ctx.Done(); return ctx.Err() }))
		if err := do(t.Context(), 0); err.Error() != "timed out after 1s: context deadline exceeded" {
			t.Error(err)
		}
	})
}

// A node that has timed out has failed; one that was stopped with the walk is
// canceled.
func TestTimeoutIsFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := graph(t, "late stopped", "")
		waits := func(ctx context.Context, _ int) error { <-ctx.Done(); return ctx.Err() }
		r, err := g.Walk(t.Context(), func(ctx context.Context, i int) error {
			return Timeout(time.Duration(1+i)*time.Second, waits)(ctx, i)
		}, WalkOptions{Workers: 2})
		if got := states(g, r); got != "late:failed stopped:canceled" || !errors.As(err, new(*TimeoutError)) {
			t.Errorf("%s, %v", got, err)
		}
	})
}

func TestRetry(t *testing.T) {
	t.Parallel()
	never := func(_ int, err error) (time.Duration, bool) { return 0, !errors.Is(err, errBroken) }
	other := errors.New("other")
	tests := []struct {
		name     string
		attempts int
		backoff  Backoff
		errs     []error // of the attempts
		want     error
		took     time.Duration
	}{
		{"at once", 3, Doubling(time.Second, time.Minute), []error{nil}, nil, 0},
		{"second", 3, Doubling(time.Second, time.Minute), []error{other, nil}, nil, time.Second},
		{"never", 4, Doubling(time.Second, 2*time.Second), []error{other, other, other, errBroken}, errBroken, 5 * time.Second},
		{"without waiting", 3, nil, []error{other, other, errBroken}, errBroken, 0},
		{"what no attempt mends", 3, never, []error{other, errBroken}, errBroken, 0},
		{"skip", 3, nil, []error{ErrSkip}, ErrSkip, 0},
		{"no attempts is one", 0, nil, []error{errBroken}, errBroken, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began, made := time.Now(), 0
				err := Retry(tt.attempts, tt.backoff, func(context.Context, int) error {
					made++
					return tt.errs[made-1]
				})(t.Context(), 0)
				if err != tt.want || made != len(tt.errs) {
					t.Errorf("%v after %d attempts, want %v after %d", err, made, tt.want, len(tt.errs))
				}
				if took := time.Since(began); took != tt.took {
					t.Errorf("took %v, want %v", took, tt.took)
				}
			})
		})
	}
}

func TestRetryEndsWithContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reason := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Minute, func() { cancel(reason) })
		g := graph(t, "a", "")
		r, err := g.Walk(ctx, Retry(5, Doubling(time.Hour, time.Hour), func(context.Context, int) error { return errBroken }), WalkOptions{})
		if err != reason || r.State(0) != Canceled {
			t.Errorf("%v, %v", err, r.State(0))
		}
		if err := r.Err(0); !errors.Is(err, reason) || !errors.Is(err, errBroken) || !strings.Contains(err.Error(), "attempt 2") {
			t.Errorf("error of the node: %v", err)
		}
	})
}

func TestRetryNotAfterEndOfContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	made := 0
	err := Retry(5, nil, func(context.Context, int) error { made++; cancel(); return errBroken })(ctx, 0)
	if made != 1 || !errors.Is(err, errBroken) || !errors.Is(err, context.Canceled) {
		t.Errorf("%d attempts, %v", made, err)
	}
}

func TestDoubling(t *testing.T) {
	t.Parallel()
	waits := func(b Backoff, attempts ...int) []time.Duration {
		var out []time.Duration
		for _, a := range attempts {
			wait, again := b(a, errBroken)
			if !again {
				t.Error("no other attempt")
			}
			out = append(out, wait)
		}
		return out
	}
	if got := waits(Doubling(1, 10), 1, 2, 3, 4, 5, 1000); !slices.Equal(got, []time.Duration{1, 2, 4, 8, 10, 10}) {
		t.Error(got)
	}
	if got := waits(Doubling(20, 10), 1, 2); !slices.Equal(got, []time.Duration{10, 10}) {
		t.Error(got)
	}
	if got := waits(Doubling(1, math.MaxInt64), 63, 64, 500); !slices.Equal(got, []time.Duration{1 << 62, math.MaxInt64, math.MaxInt64}) {
		t.Error(got)
	}
	if got := waits(Doubling(0, time.Hour), 1, 1000); !slices.Equal(got, []time.Duration{0, 0}) {
		t.Error(got)
	}
}
