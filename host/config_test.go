package host

import (
	"testing"
	"time"

	"github.com/flowhost/flowhost/run"
)

func TestZeroConfigWorks(t *testing.T) {
	t.Parallel()
	for _, given := range []Config{{}, {Instances: -1, Memory: -1, Timeout: -1, ModuleSize: -1, Limits: run.Limits{Memory: -1, Output: -1, Log: -1}}} {
		c := given.withDefaults()
		if c.Modules == nil || c.Log == nil || c.Instances <= 0 || c.Memory != 1<<30 || c.Queue != 1024 ||
			c.Timeout != 5*time.Minute || c.ModuleSize != 64<<20 {
			t.Errorf("%+v", c)
		}
		if want := (run.Limits{Memory: 256 << 20, Output: 1 << 20, Log: 64 << 10}); c.Limits != want {
			t.Errorf("limits %+v, want %+v", c.Limits, want)
		}
	}
	for given, want := range map[time.Duration]time.Duration{0: 2 * time.Second, -1: 0, time.Minute: time.Minute} {
		if c := (Config{Grace: given}).withDefaults(); c.Grace != want {
			t.Errorf("grace %v, want %v", c.Grace, want)
		}
	}
}

func TestLimitsOfACallComeBeforeTheHosts(t *testing.T) {
	t.Parallel()
	got := limitsOr(run.Limits{Output: 5}, run.Limits{Memory: 1, Output: 2, Log: 3})
	if want := (run.Limits{Memory: 1, Output: 5, Log: 3}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
