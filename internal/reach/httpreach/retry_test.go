package httpreach_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/flowhost/flowhost/internal/reach/httpreach"
	"github.com/flowhost/flowhost/run/access"
)

// failing answers a status, with headers, to the first requests and 200 after.
func failing(times int64, status int, headers ...string) http.HandlerFunc {
	var n atomic.Int64
	return func(w http.ResponseWriter, _ *http.Request) {
		if n.Add(1) > times {
			return
		}
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "failed")
	}
}

func TestRetries(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		handler  http.HandlerFunc
		method   string
		key      any
		attempts int
		status   int
		requests int64
		waits    []time.Duration
	}{
		"first succeeds":        {failing(0, 0), "GET", nil, 3, 200, 1, nil},
		"third succeeds":        {failing(2, 503), "GET", nil, 3, 200, 3, []time.Duration{time.Second, 2 * time.Second}},
		"all fail":              {failing(9, 503), "GET", nil, 3, 503, 3, []time.Duration{time.Second, 2 * time.Second}},
		"delays are bounded":    {failing(9, 503), "GET", nil, 7, 503, 7, []time.Duration{1e9, 2e9, 4e9, 8e9, 10e9, 10e9}},
		"default":               {failing(9, 503), "GET", nil, 0, 503, 1, nil},
		"429":                   {failing(1, 429), "GET", nil, 2, 200, 2, []time.Duration{time.Second}},
		"500":                   {failing(1, 500), "GET", nil, 2, 200, 2, []time.Duration{time.Second}},
		"404 stays":             {failing(1, 404), "GET", nil, 3, 404, 1, nil},
		"501 stays":             {failing(1, 501), "GET", nil, 3, 501, 1, nil},
		"PUT":                   {failing(1, 503), "PUT", nil, 3, 200, 2, []time.Duration{time.Second}},
		"DELETE":                {failing(1, 503), "DELETE", nil, 3, 200, 2, []time.Duration{time.Second}},
		"POST":                  {failing(1, 503), "POST", nil, 3, 503, 1, nil},
		"POST with a key":       {failing(1, 503), "POST", true, 3, 200, 2, []time.Duration{time.Second}},
		"Retry-After":           {failing(1, 503, "Retry-After", "5"), "GET", nil, 3, 200, 2, []time.Duration{5 * time.Second}},
		"Retry-After, shorter":  {failing(1, 503, "Retry-After", "0"), "GET", nil, 3, 200, 2, []time.Duration{time.Second}},
		"Retry-After, nonsense": {failing(1, 503, "Retry-After", "-9"), "GET", nil, 3, 200, 2, []time.Duration{time.Second}},
		"Retry-After at last":   {failing(9, 503, "Retry-After", "99"), "GET", nil, 1, 503, 1, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, test.handler)
			waits := r.recordWaits()
			c := r.connection()
			c.HTTP.Retry = &access.Retry{Attempts: test.attempts, Delay: time.Second}
			wantStatus(t, r.do(c, fields{"method": test.method, "url": "/", "idempotency_key": test.key}, ""), test.status)
			if n := r.requests.Load(); n != test.requests {
				t.Errorf("the server got %d requests, want %d", n, test.requests)
			}
			if diff := cmp.Diff(test.waits, *waits); diff != "" {
				t.Errorf("waits (-want +got):\n%s", diff)
			}
		})
	}
}

// recordWaits lets retries wait for no time.
func (r *rig) recordWaits() *[]time.Duration {
	var all []time.Duration
	r.client.SetSleep(func(_ context.Context, d time.Duration) error {
		all = append(all, d)
		return nil
	})
	return &all
}

func TestLongRetryAfter(t *testing.T) {
	t.Parallel()
	r := newRig(t, failing(9, http.StatusTooManyRequests, "Retry-After", "60"))
	waits := r.recordWaits()
	c := r.connection()
	c.HTTP.Retry = &access.Retry{Attempts: 3}
	f := wantFault(t, r.do(c, fields{"url": "/"}, ""), access.CodeRefused, "1m0s")
	if f.RetryAfterMS != 60_000 || !f.Retryable || f.Detail != "429" || len(*waits) != 0 {
		t.Errorf("fault %+v after waits %v", *f, *waits)
	}
}

// TestRetryWithinDeadline answers what it has when the next try would come too late.
func TestRetryWithinDeadline(t *testing.T) {
	t.Parallel()
	r := newRig(t, failing(9, 503, "Retry-After", "9"))
	waits := r.recordWaits()
	c := r.connection()
	c.HTTP.Retry = &access.Retry{Attempts: 3}
	wantStatus(t, r.do(c, fields{"url": "/", "timeout_ms": 5000}, ""), 503)
	if len(*waits) != 0 || r.requests.Load() != 1 {
		t.Errorf("%d requests, waits %v", r.requests.Load(), *waits)
	}
}

func TestRetryOfBrokenConnections(t *testing.T) {
	t.Parallel()
	var n atomic.Int64
	r := newRig(t, func(http.ResponseWriter, *http.Request) {
		if n.Add(1) < 3 {
			panic(http.ErrAbortHandler)
		}
	})
	r.recordWaits()
	c := r.connection()
	c.HTTP.Retry = &access.Retry{Attempts: 3}
	wantStatus(t, r.do(c, fields{"url": "/"}, ""), 200)
}

// TestDenialIsNotRetried looks a refused name up once.
func TestDenialIsNotRetried(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.names.set(apiHost, "10.0.0.1")
	waits := r.recordWaits()
	c := r.connection()
	c.HTTP.Retry = &access.Retry{Attempts: 3}
	wantFault(t, r.do(c, fields{"url": "/"}, ""), access.CodeDenied, "private address")
	if len(*waits) != 0 || r.names.lookups.Load() != 1 {
		t.Errorf("%d lookups, waits %v", r.names.lookups.Load(), *waits)
	}
}

func TestRetryAfterForms(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"": 0, "x": 0, "-1": 0, "1.5": 0, "7": 7 * time.Second, "4294967295": 24 * time.Hour, "99999999999999": 0,
		"Fri, 02 Jan 2026 03:04:35 GMT": 30 * time.Second, "Fri, 02 Jan 2026 03:04:00 GMT": 0, "Fri, 02 Jan 2126 03:04:00 GMT": 24 * time.Hour,
	} {
		if got := httpreach.RetryAfter(http.Header{"Retry-After": {text}}, now); got != want {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
	}
}

func TestConcurrency(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]int{"two": 2, "default": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			most := limit
			if most == 0 {
				most = access.DefaultConcurrency
			}
			var under, peak atomic.Int64
			full := make(chan struct{})
			var once sync.Once
			r := newRig(t, func(http.ResponseWriter, *http.Request) {
				n := under.Add(1)
				for p := peak.Load(); n > p && !peak.CompareAndSwap(p, n); p = peak.Load() {
				}
				if n == int64(most) {
					once.Do(func() { close(full) })
				}
				<-full
				under.Add(-1)
			})
			c := r.connection()
			c.Limit.Concurrency = limit
			var all sync.WaitGroup
			for range 3 * most {
				all.Go(func() { wantNoFault(t, r.do(c, fields{"url": "/"}, "")) })
			}
			all.Wait()
			if got := peak.Load(); got != int64(most) {
				t.Errorf("%d at once, want %d", got, most)
			}
		})
	}
}

// TestFullConnection makes an operation wait for a slot until its time is over.
func TestFullConnection(t *testing.T) {
	t.Parallel()
	arrived, leave := make(chan struct{}), make(chan struct{})
	r := newRig(t, func(http.ResponseWriter, *http.Request) {
		close(arrived)
		<-leave
	})
	c := r.connection()
	c.Limit.Concurrency = 1
	first := make(chan access.Answer, 1)
	go func() { first <- r.do(c, fields{"url": "/"}, "") }()
	<-arrived
	wantFault(t, r.do(c, fields{"url": "/", "timeout_ms": 20}, ""), access.CodeTimeout)
	close(leave)
	wantStatus(t, <-first, 200)
	if n := r.requests.Load(); n != 1 {
		t.Errorf("the server got %d requests, want 1", n)
	}
}

func TestRate(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	c := r.connection()
	c.Limit = access.Limit{Rate: 0.001, Burst: 2}
	for range 2 {
		wantStatus(t, r.do(c, fields{"url": "/"}, ""), 200)
	}
	f := wantFault(t, r.do(c, fields{"url": "/", "timeout_ms": 5000}, ""), access.CodeTimeout, "rate")
	if !f.Retryable || r.requests.Load() != 2 {
		t.Errorf("fault %+v after %d requests", *f, r.requests.Load())
	}
	other := r.connection()
	other.Folder, other.Limit = "/other", c.Limit
	wantStatus(t, r.do(other, fields{"url": "/"}, ""), 200)
}

func wantNoFault(t *testing.T, answer access.Answer) {
	t.Helper()
	if answer.Fault != nil {
		t.Errorf("fault %+v", *answer.Fault)
	}
}

// TestParallelRequests starts ten that need each other.
func TestParallelRequests(t *testing.T) {
	t.Parallel()
	var here sync.WaitGroup
	here.Add(10)
	r := newRig(t, func(http.ResponseWriter, *http.Request) {
		here.Done()
		here.Wait()
	})
	var all sync.WaitGroup
	for i := range 10 {
		all.Go(func() { wantNoFault(t, r.get(r.origin()+fmt.Sprint("/", i))) })
	}
	all.Wait()
}
