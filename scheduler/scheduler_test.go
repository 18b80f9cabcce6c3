package scheduler

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// rig is a scheduler that runs within a bubble of synctest.
type rig struct {
	*Scheduler
	t     *testing.T
	start time.Time
	kill  context.CancelFunc
	ended chan error

	mu    sync.Mutex
	calls []fired
}

func boot(t *testing.T, c Config) *rig {
	t.Helper()
	ctx, kill := context.WithCancel(context.WithoutCancel(t.Context())) // cleanups come later
	r := &rig{Scheduler: New(c), t: t, kill: kill, ended: make(chan error, 1)}
	r.start = r.config.Clock.Now()
	go func() { r.ended <- r.Run(ctx) }()
	synctest.Wait()
	t.Cleanup(func() {
		if err := r.Close(context.Background()); err != nil {
			t.Errorf("Close: %v", err)
		}
		kill()
	})
	return r
}

func (r *rig) note(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, fired{name, r.config.Clock.Now().Sub(r.start)})
}

// notes is a function that notes its calls and takes some time.
func (r *rig) notes(name string, takes time.Duration) Func {
	return func(ctx context.Context, _ Fire) error {
		r.note(name)
		return wait(ctx, takes)
	}
}

// wait lets time pass, unless the context ends.
func wait(ctx context.Context, d time.Duration) error {
	if d == 0 {
		return nil
	}
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (r *rig) at(after time.Duration, name string, takes time.Duration) *Entry {
	r.t.Helper()
	return must(r.At(r.start.Add(after), r.notes(name, takes)))
}

// must ends the test with a stack when there is an error.
func must[V any](v V, err error) V {
	if err != nil {
		panic(err)
	}
	return v
}

// pass lets time pass and gives the calls there were.
func (r *rig) pass(d time.Duration) []fired {
	time.Sleep(d)
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	calls := r.calls
	r.calls = nil
	return calls
}

func (r *rig) expect(d time.Duration, want ...fired) {
	r.t.Helper()
	if got := r.pass(d); !slices.Equal(got, want) {
		r.t.Errorf("calls %v, want %v", got, want)
	}
}

func TestSchedulerCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := boot(t, Config{Workers: 1})
		r.at(90*time.Second, "at", 0)
		r.at(-time.Hour, "past", 0)
		must(r.Every(time.Minute, r.notes("every", 0)))
		must(r.Cron("*/2 * * * *", time.UTC, r.notes("cron", 0)))
		r.expect(4*time.Minute,
			fired{"past", 0},
			fired{"every", time.Minute},
			fired{"at", 90 * time.Second},
			fired{"every", 2 * time.Minute}, fired{"cron", 2 * time.Minute},
			fired{"every", 3 * time.Minute},
			fired{"every", 4 * time.Minute}, fired{"cron", 4 * time.Minute})
		if got := r.Stats(); got != (Stats{Armed: 2, Fired: 8, Late: 1}) {
			t.Errorf("stats %+v", got)
		}
	})
}

func TestFire(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := boot(t, Config{Workers: 1})
		r.at(time.Minute, "busy", 5*time.Second)
		due := r.start.Add(time.Minute)
		var got Fire
		e := must(r.Add(Plan{Name: "order", At: due, Call: func(_ context.Context, f Fire) error {
			got = f
			return nil
		}}))
		r.pass(2 * time.Minute)
		if want := (Fire{Entry: e, Name: "order", Nominal: due, Due: due, Started: due.Add(5 * time.Second)}); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
		if r.Stats().Late != 1 {
			t.Errorf("stats %+v", r.Stats())
		}
	})
}

// Of one instant, the priority decides, then the declaration: also when what was
// declared first has been armed again after what was declared later.
func TestSameInstant(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := boot(t, Config{Workers: 1})
		plan := func(name string, priority int8, interval time.Duration) {
			must(r.Add(Plan{Schedule: must(NewEvery(interval, 0)), Call: r.notes(name, 0), Priority: priority}))
		}
		plan("often", 0, time.Minute)
		plan("hourly", 0, time.Hour)
		plan("urgent", 100, time.Hour)
		plan("whenever", -128, time.Hour)
		r.pass(59*time.Minute + time.Second)
		hour := time.Hour
		r.expect(time.Minute,
			fired{"urgent", hour}, fired{"often", hour}, fired{"hourly", hour}, fired{"whenever", hour})
	})
}

func TestEntryCancel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := boot(t, Config{Workers: 1, Limit: 4})
		head := r.at(time.Second, "head", 0)
		r.at(2*time.Second, "busy", time.Minute)
		waits := r.at(3*time.Second, "waits", 0)
		every := must(r.Every(time.Hour, r.notes("every", 0)))
		for _, e := range []*Entry{head, every} {
			if !e.Cancel() || e.Cancel() {
				t.Error("cancel must work once")
			}
			if _, ok := e.Next(); ok {
				t.Error("a canceled entry has a next time")
			}
		}
		if armed := r.Stats().Armed; armed != 2 {
			t.Errorf("%d armed, want 2", armed)
		}
		r.expect(30*time.Second, fired{"busy", 2 * time.Second})
		if got := r.Stats(); got.Waiting != 1 || got.Running != 1 {
			t.Errorf("stats %+v", got)
		}
		if !waits.Cancel() || waits.Cancel() {
			t.Error("cancel of a call that waits must work once")
		}
		r.expect(2 * time.Hour)
		if got := r.Stats(); got != (Stats{Fired: 1}) {
			t.Errorf("stats %+v", got)
		}
	})
}

func TestCancelFromItsCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := boot(t, Config{})
		must(r.Every(time.Minute, func(_ context.Context, f Fire) error {
			r.note("call")
			f.Entry.Cancel()
			return nil
		}))
		r.expect(time.Hour, fired{"call", time.Minute})
	})
}

// Cancels at the instant itself, with real goroutines: a call that starts after
// Cancel has returned fails the test.
func TestCanceledNeverStarts(t *testing.T) {
	t.Parallel()
	const n = 2000
	s := New(Config{Workers: 4})
	ended := make(chan error, 1)
	go func() { ended <- s.Run(t.Context()) }()
	due := time.Now().Add(20 * time.Millisecond)
	var canceled [n]atomic.Bool
	var settled sync.WaitGroup
	settled.Add(n)
	entries := make([]*Entry, n)
	for i := range entries {
		entries[i] = must(s.At(due.Add(time.Duration(i)*5*time.Microsecond), func(context.Context, Fire) error {
			if canceled[i].Load() {
				t.Errorf("call %d started after Cancel", i)
			}
			settled.Done()
			return nil
		}))
	}
	for i, e := range entries {
		if e.Cancel() {
			canceled[i].Store(true)
			settled.Done()
		}
		if i%50 == 0 {
			<-time.After(time.Until(due.Add(time.Duration(i) * 5 * time.Microsecond)))
		}
	}
	settled.Wait()
	if err := s.Close(t.Context()); err != nil || <-ended != nil {
		t.Error(err)
	}
}

func TestOverlap(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := boot(t, Config{Workers: 4})
		minute, _ := NewEvery(time.Minute, 0)
		must(r.Add(Plan{Schedule: minute, Call: r.notes("skip", 150*time.Second)}))
		r.expect(6*time.Minute+time.Second,
			fired{"skip", 1 * time.Minute}, fired{"skip", 4 * time.Minute})
		if got := r.Stats(); got.Skipped != 4 || got.Running != 1 {
			t.Errorf("stats %+v", got)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		r := boot(t, Config{Workers: 4})
		minute, _ := NewEvery(time.Minute, 0)
		must(r.Add(Plan{Schedule: minute, Call: r.notes("beside", 150*time.Second), Overlap: OverlapAllow}))
		if got := r.pass(6*time.Minute + time.Second); len(got) != 6 {
			t.Errorf("calls %v", got)
		}
		if got := r.Stats(); got.Skipped != 0 || got.Running != 3 {
			t.Errorf("stats %+v", got)
		}
	})
}

// A transient error must never end a schedule (windmill#10168), and neither must a
// panic, nor a function that ends its goroutine.
func TestScheduleOutlivesErrors(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var told []string
		r := boot(t, Config{Workers: 1, OnError: func(f Fire, err error) {
			told = append(told, fmt.Sprintf("%s: %v", f.Name, err))
			if p := (*PanicError)(nil); errors.As(err, &p) && !strings.Contains(string(p.Stack), "TestScheduleOutlivesErrors") {
				t.Errorf("the stack does not say where: %s", p.Stack)
			}
		}})
		minute, _ := NewEvery(time.Minute, 0)
		calls := 0
		must(r.Add(Plan{Name: "a", Schedule: minute, Call: func(context.Context, Fire) error {
			switch calls++; calls {
			case 1:
				return errors.New("transient")
			case 2:
				panic("boom")
			case 3:
				runtime.Goexit()
			}
			return nil
		}}))
		r.at(3*time.Minute, "behind", 0)
		r.expect(5*time.Minute, fired{"behind", 3 * time.Minute})
		if want := []string{"a: transient", "a: the function panicked: boom"}; !slices.Equal(told, want) {
			t.Errorf("told %q, want %q", told, want)
		}
		if got := r.Stats(); calls != 5 || got != (Stats{Armed: 1, Fired: 6, Failed: 2}) {
			t.Errorf("%d calls, stats %+v", calls, got)
		}
	})
}

// One hour of suspend is one call of each entry, not 720 (robfig/cron#26,
// dagu#2742); then the schedule continues. A one-off that was missed is called.
func TestSuspend(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := NewVirtualClock(epoch)
		r := boot(t, Config{Workers: 1, Clock: c})
		must(r.Every(5*time.Second, r.notes("every", 0)))
		r.at(30*time.Minute, "once", 0)
		c.Set(epoch.Add(time.Hour + time.Second))
		woke := time.Hour + time.Second
		r.expect(0, fired{"every", woke}, fired{"once", woke})
		c.Advance(4 * time.Second)
		r.expect(0, fired{"every", time.Hour + 5*time.Second})
	})
}

// A clock that is set back repeats nothing, and a schedule does not wait for times
// of a clock that was wrong (late NTP: robfig/cron#509, #352, PR#480).
func TestClockIsSetBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := NewVirtualClock(epoch)
		r := boot(t, Config{Workers: 1, Clock: c})
		must(r.Cron("0 * * * *", time.UTC, r.notes("hourly", 0)))
		c.Advance(time.Hour)
		r.expect(0, fired{"hourly", time.Hour})
		c.Advance(-10 * time.Minute)
		c.Set(epoch.Add(30 * time.Minute))
		c.Advance(time.Hour) // over 13:00 again
		r.expect(0)
		c.Advance(30 * time.Minute)
		r.expect(0, fired{"hourly", 2 * time.Hour})
	})
	synctest.Test(t, func(t *testing.T) {
		c := NewVirtualClock(epoch.AddDate(10, 0, 0))
		r := boot(t, Config{Workers: 1, Clock: c})
		every := must(r.Every(time.Minute, r.notes("every", 0)))
		once := r.at(0, "once", 0)
		r.expect(0, fired{"once", 0})
		c.Set(epoch)
		r.pass(0)
		if next, ok := every.Next(); !ok || next != epoch.Add(time.Minute) {
			t.Errorf("waits for %v, %v", next, ok)
		}
		c.Advance(time.Minute)
		if got := r.pass(0); len(got) != 1 || once.Cancel() {
			t.Errorf("calls %v", got)
		}
	})
}

// A dated one-off fires once; go-quartz fired one a million times (go-quartz#69).
func TestOneOffFiresOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := boot(t, Config{Limit: 1})
		r.at(time.Minute, "once", 0)
		r.expect(1000*time.Hour, fired{"once", time.Minute})
		r.start = time.Now()
		r.at(time.Minute, "its place is free", 0)
		r.expect(time.Hour, fired{"its place is free", time.Minute})
	})
}

// ended is a schedule of three minutes.
type ended struct{ at time.Time }

func (e ended) Next(after time.Time) (time.Time, bool) {
	next := after.Truncate(time.Minute).Add(time.Minute)
	return next, next.Before(e.at)
}

func (ended) Prev(time.Time) (time.Time, bool) { return time.Time{}, false }
func (ended) String() string                   { return "ended" }

func TestScheduleEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := boot(t, Config{Limit: 1})
		e := must(r.Schedule(ended{r.start.Add(3 * time.Minute)}, r.notes("call", 0)))
		r.expect(time.Hour, fired{"call", time.Minute}, fired{"call", 2 * time.Minute})
		if _, ok := e.Next(); ok || e.Cancel() {
			t.Error("an entry that is over waits for something")
		}
		r.at(2*time.Hour, "its place is free", 0)
	})
}

// 10 000 calls that each take time: nominal times do not drift, as they did by
// 752 µs each in carlescere/scheduler.
func TestCallsDoNotDrift(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := boot(t, Config{Workers: 1})
		must(r.Every(time.Second, r.notes("call", 3*time.Millisecond)))
		calls := r.pass(10_000*time.Second + time.Millisecond)
		for i, call := range calls {
			if want := time.Duration(i+1) * time.Second; call.after != want {
				t.Fatalf("call %d after %v", i, call.after)
			}
		}
		if len(calls) != 10_000 {
			t.Errorf("%d calls", len(calls))
		}
	})
}

func TestPlanErrors(t *testing.T) {
	t.Parallel()
	s := New(Config{Limit: 1})
	nothing := func(context.Context, Fire) error { return nil }
	minute, _ := NewEvery(time.Minute, 0)
	for _, p := range []Plan{{}, {Call: nothing}, {At: epoch}, {At: epoch, Schedule: minute, Call: nothing}} {
		if _, err := s.Add(p); !errors.Is(err, ErrPlan) {
			t.Errorf("%+v: %v", p, err)
		}
	}
	if _, err := s.Schedule(ended{}, nothing); !errors.Is(err, ErrNever) {
		t.Errorf("a schedule that is over: %v", err)
	}
	var interval *IntervalError
	if _, err := s.Every(0, nothing); !errors.As(err, &interval) {
		t.Errorf("no interval: %v", err)
	}
	var syntax *ParseError
	if _, err := s.Cron("61 * * * *", time.UTC, nothing); !errors.As(err, &syntax) {
		t.Errorf("minute 61: %v", err)
	}
	must(s.At(epoch, nothing))
	// jasonlvhit/gocron panics when its list is full.
	var full *LimitError
	if _, err := s.Every(time.Minute, nothing); !errors.As(err, &full) || full.Limit != 1 {
		t.Errorf("beyond the limit: %v", err)
	}
}
