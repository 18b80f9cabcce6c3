package engine

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/flowhost/flowhost/engine/memory"
	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/scheduler"
)

// pass lets time go by on a virtual clock and the engine do what is due, a step
// at a time.
func pass(clock *scheduler.VirtualClock, d, step time.Duration) {
	for ; d > 0; d -= step {
		clock.Advance(min(d, step))
		synctest.Wait()
	}
}

// set puts a clock to another time, and lets the engine see it.
func set(clock *scheduler.VirtualClock, by time.Duration) {
	clock.Set(clock.Now().Add(by))
	synctest.Wait()
}

// Clocks are set, and machines sleep: no nominal time fires twice, none waits for a
// time that is not any more, and there is no storm. Sources: robfig/cron#352,
// #509 and PR#480, dagu#2742, systemd#16732.
func TestClockJumps(t *testing.T) {
	t.Parallel()
	const m, h = time.Minute, time.Hour
	for _, c := range []struct {
		name     string
		schedule string
		by       time.Duration
		want     []time.Duration
	}{
		{"an hour back", `cron = "*/30 * * * *"`, -h, []time.Duration{30 * m, h, 90 * m, 2 * h, 150 * m, 3 * h, 210 * m}},
		{"a quarter of an hour back, over a fire", `every = "30m"`, -15 * m, []time.Duration{30 * m, h, 90 * m, 2 * h, 150 * m, 3 * h, 210 * m}},
		{"three hours on", `every = "30m"`, 3*h + 10*m, []time.Duration{30 * m, h, 90 * m, 4*h + 30*m, 5 * h, 330 * m, 6 * h, 390 * m}},
		{"three hours on, all", `
			every           = "30m"
			catch_up        = "all"
			catch_up_window = "80m"
			overlap         = "allow"`, 3*h + 10*m, []time.Duration{30 * m, h, 90 * m, 210 * m, 4 * h, 4*h + 30*m, 5 * h, 330 * m, 6 * h, 390 * m}},
		{"three hours on, none", `
			every    = "30m"
			catch_up = "none"`, 3*h + 10*m, []time.Duration{30 * m, h, 90 * m, 5 * h, 330 * m, 6 * h, 390 * m}},
		{"a second on", `every = "30m"`, time.Second, []time.Duration{30 * m, h, 90 * m, 2 * h, 150 * m, 3 * h, 210 * m}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			flows := load(t, scheduled(c.schedule+"\nend = \"2000-01-01T06:31:00Z\""))
			synctest.Test(t, func(t *testing.T) {
				clock, journal := scheduler.NewVirtualClock(epoch), memory.NewJournal()
				r := boot(t, Config{Journal: journal, Clock: clock}, flows)
				synctest.Wait()
				pass(clock, 92*m, 10*time.Second)
				set(clock, c.by)
				pass(clock, 130*m, 10*time.Second)
				if c.by < 0 {
					pass(clock, -c.by, 10*time.Second)
				}
				r.stop()
				want := c.want
				for len(want) > 0 && want[len(want)-1] > clock.Now().Sub(epoch) {
					want = want[:len(want)-1]
				}
				if diff := cmp.Diff(want, fired(t, journal)); diff != "" {
					t.Errorf("until %s (-want +got):\n%s", clock.Now(), diff)
				}
			})
		})
	}
}

// A clock that was years ahead when the host started must not keep its schedules
// waiting. Source: robfig/cron#509, a late synchronization of time.
func TestAClockThatWasYearsAhead(t *testing.T) {
	t.Parallel()
	for _, restart := range []bool{false, true} {
		flows := load(t, scheduled(`every = "1h"`))
		synctest.Test(t, func(t *testing.T) {
			clock, journal := scheduler.NewVirtualClock(epoch.AddDate(4, 0, 0)), memory.NewJournal()
			r := boot(t, Config{Journal: journal, Clock: clock}, flows)
			synctest.Wait()
			pass(clock, 90*time.Minute, time.Minute)
			if restart {
				r.crash()
				clock.Set(epoch)
				r = boot(t, Config{Journal: journal, Clock: clock}, flows)
				synctest.Wait()
			} else {
				clock.Set(epoch)
				synctest.Wait()
			}
			pass(clock, 2*time.Hour+time.Minute, time.Minute)
			r.stop()
			wantFires(t, journal, epoch.AddDate(4, 0, 0).Add(time.Hour).Sub(epoch), time.Hour, 2*time.Hour)
		})
	}
}

// Deadlines and retries count elapsed time: setting the clock neither ends an
// attempt nor keeps one waiting.
func TestSettingTheClockMovesNoDeadline(t *testing.T) {
	t.Parallel()
	flows := load(t, `
flow "f" {
  timeout = "10m"
  task "a" {
    plugin  = "./m.wasm"
    timeout = "2m"
    retry {
      attempts = 2
      backoff  = "constant"
      delay    = "1m"
    }
  }
}`)
	for _, by := range []time.Duration{-time.Hour, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			clock := scheduler.NewVirtualClock(epoch)
			r := boot(t, Config{Clock: clock, Invoker: guests{"a": takes(24 * time.Hour)}}, flows)
			id := r.submit("f", `null`)
			synctest.Wait()
			attempts := func() int {
				record, err := r.Get(t.Context(), id)
				if err != nil {
					t.Fatal(err)
				}
				return taskOf(t, record, "a").Attempts
			}
			pass(clock, 90*time.Second, 10*time.Second)
			set(clock, by)
			pass(clock, 20*time.Second, 10*time.Second)
			if n := attempts(); n != 1 {
				t.Errorf("%s: %d attempts after 110 s", by, n)
			}
			pass(clock, 20*time.Second, 10*time.Second) // the deadline
			set(clock, by)
			pass(clock, 30*time.Second, 10*time.Second)
			if n := attempts(); n != 1 {
				t.Errorf("%s: %d attempts, half a minute after the first", by, n)
			}
			pass(clock, 40*time.Second, 10*time.Second)
			if n := attempts(); n != 2 {
				t.Errorf("%s: %d attempts, more than a minute after the first", by, n)
			}
			pass(clock, 3*time.Minute, 10*time.Second)
			if record := r.wait(id); record.State != run.Failed || record.Error.Outcome != run.OutcomeTimedOut {
				t.Errorf("%s: %s, %v", by, record.State, record.Error)
			}
			r.stop()
		})
	}
}

// Three hosts on one journal, with clocks two seconds apart, each taking over at
// a nominal instant: one run for each nominal time. Sources: gocron#841,
// nomad#2721 and #11052.
func TestHostsTakeOverAtANominalInstant(t *testing.T) {
	t.Parallel()
	flows := load(t, scheduled(`every = "10s"`))
	synctest.Test(t, func(t *testing.T) {
		const hosts = 3
		journal := memory.NewJournal()
		clocks := [hosts]*scheduler.VirtualClock{}
		for i := range clocks {
			clocks[i] = scheduler.NewVirtualClock(epoch.Add(time.Duration(i-1) * 2 * time.Second))
		}
		var rigs [hosts]*rig
		var mu sync.Mutex
		for second := range 300 {
			for _, clock := range clocks {
				clock.Advance(time.Second)
			}
			if second%10 == 9 { // the middle clock has just reached a nominal time
				next := second / 10 % hosts
				mu.Lock()
				if rigs[next] != nil {
					rigs[next].kill()
					<-rigs[next].ended
				}
				rigs[next] = boot(t, Config{Journal: journal, Clock: clocks[next]}, flows)
				mu.Unlock()
			}
			synctest.Wait()
		}
		for _, r := range rigs {
			r.kill()
			<-r.ended
		}
		seen := map[time.Duration]int{}
		for _, nominal := range fired(t, journal) {
			if seen[nominal]++; seen[nominal] > 1 {
				t.Errorf("%s has made two runs", nominal)
			}
		}
		for nominal := 20 * time.Second; nominal <= 280*time.Second; nominal += 10 * time.Second {
			if seen[nominal] == 0 {
				t.Errorf("%s has made no run", nominal)
			}
		}
	})
}
