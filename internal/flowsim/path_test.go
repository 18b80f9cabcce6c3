package flowsim

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestCriticalPath(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		blocks  string
		lengths map[string]int
		failing string
		workers int
		want    string
	}{
		"a chain": {
			"task \"a\" {; PLUGIN; }; task \"b\" {; PLUGIN; after = [task.a]; }",
			map[string]int{"a": 3, "b": 4}, "", 0, "a 0..3, b 3..7",
		},
		"two arms": {
			"task \"a\" {; PLUGIN; }; task \"b\" {; PLUGIN; after = [task.a]; }; task \"c\" {; PLUGIN; after = [task.a]; }; task \"d\" {; PLUGIN; after = [task.b, task.c]; }",
			map[string]int{"a": 1, "b": 9, "c": 5, "d": 2}, "", 0, "a 0..1, b 1..10, d 10..12",
		},
		"what ends last is no end of the graph": {
			"task \"a\" {; PLUGIN; }; task \"b\" {; PLUGIN; }",
			map[string]int{"a": 9, "b": 2}, "", 0, "a 0..9",
		},
		"a task that waits for a worker": {
			"task \"a\" {; PLUGIN; }; task \"b\" {; PLUGIN; }",
			map[string]int{"a": 5, "b": 2}, "", 1, "b 0..7",
		},
		"a retry": {
			"task \"a\" {; PLUGIN; retry {; attempts = 3; delay = \"10ms\"; backoff = \"constant\"; jitter = 0; }; }; task \"b\" {; PLUGIN; after = [task.a]; run_on = \"failure\"; }",
			map[string]int{"a": 5, "b": 2}, "a", 0, "a 0..35, b 35..37",
		},
		"a skipped task leads on": {
			"task \"a\" {; PLUGIN; }; task \"b\" {; PLUGIN; after = [task.a]; when = 1 > 2; }; task \"c\" {; PLUGIN; after = [task.b]; run_on = \"always\"; }",
			map[string]int{"a": 5, "c": 2}, "", 0, "a 0..5, c 5..7",
		},
		"a hook": {
			"task \"a\" {; PLUGIN; }; task \"b\" {; PLUGIN; }; on_failure {; task \"h\" {; PLUGIN; }; }; finally {; task \"l\" {; PLUGIN; }; }",
			map[string]int{"a": 5, "b": 9, "h": 2, "l": 1}, "a", 0, "b 0..9, h 9..11, l 11..12",
		},
		"a serial group": {
			"group \"g\" {; mode = \"serial\"; task \"a\" {; PLUGIN; }; task \"b\" {; PLUGIN; }; }; task \"c\" {; PLUGIN; after = [group.g]; }",
			map[string]int{"a": 5, "b": 9, "c": 2}, "", 0, "a 0..5, b 5..14, c 14..16",
		},
		"a race": {
			"group \"g\" {; mode = \"race\"; task \"a\" {; PLUGIN; }; task \"b\" {; PLUGIN; }; }; task \"c\" {; PLUGIN; after = [group.g]; }",
			map[string]int{"a": 5, "b": 9, "c": 2}, "", 0, "a 0..5, c 5..7",
		},
		"a fan-out": {
			"task \"a\" {; PLUGIN; for_each = [1, 2, 3]; max_parallel = 2; }; task \"c\" {; PLUGIN; after = [task.a]; }",
			map[string]int{"a": 5, "c": 2}, "", 0, "a 0..10, c 10..12",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := flow(t, c.blocks)
			config.Runs, config.Workers, config.Tasks = 1, c.workers, takes(c.lengths)
			if c.failing != "" {
				config.Tasks = fails(config.Tasks, c.failing, 1)
			}
			r := report(t, config)
			if got := steps(r.Shown.Path); got != c.want {
				t.Errorf("%s\nwant %s", got, c.want)
			}
			for _, l := range r.Shown.Lines {
				if on := strings.Contains(", "+c.want, ", "+l.Task+" "); on != l.Critical && l.Key == "" {
					t.Errorf("%s: critical %t", l.Task, l.Critical)
				}
			}
		})
	}
}

// tangle is a flow in which all kinds of things happen.
func tangle() string {
	var b strings.Builder
	b.WriteString("defaults {\nretry {\nattempts = 2\ndelay = \"3ms\"\njitter = 0.5\n}\n}\n")
	for i := range 12 {
		fmt.Fprintf(&b, "task \"t%d\" {\n PLUGIN\n", i)
		if i >= 3 {
			fmt.Fprintf(&b, "after = [task.t%d, task.t%d]\nrun_on = %q\n", i-3, (i*7)%(i-2), []string{"success", "always", "failure"}[i%3])
		}
		if i%4 == 1 {
			b.WriteString("for_each = [1, 2, 3, 4]\non_error = \"continue\"\n")
		}
		b.WriteString("}\n")
	}
	b.WriteString("group \"g\" {\nmode = \"first_success\"\ntask \"x\" {\nPLUGIN\nafter = [task.t4]\n}\ntask \"y\" {\nPLUGIN\n}\n}\n")
	b.WriteString("task \"z\" {\nPLUGIN\nafter = [group.g]\n}\non_failure {\ntask \"h\" {\nPLUGIN\n}\n}\nfinally {\ntask \"l\" {\nPLUGIN\n}\n}\n")
	return b.String()
}

// TestPathsAreWhole holds that the steps follow each other without a gap, from the
// beginning of a run to its end, and that shares add up.
func TestPathsAreWhole(t *testing.T) {
	t.Parallel()
	config := flow(t, tangle())
	config.Workers, config.Runs = 3, 150
	sum := 0.0
	r := report(t, config)
	for _, c := range r.Critical {
		sum += c.Mean
	}
	if sum < 0.9999 || sum > 1.0001 || r.Succeeded == 0 || r.Failed == 0 || r.Succeeded+r.Failed != 150 {
		t.Errorf("shares make %f; %d succeeded and %d failed", sum, r.Succeeded, r.Failed)
	}
	for show := 1; show <= 150; show += 10 {
		config.Show = show
		shown := report(t, config).Shown
		at := time.Duration(0)
		for _, s := range shown.Path {
			if s.From != at || s.To < s.From {
				t.Errorf("run %d: %s", show, steps(shown.Path))
			}
			at = s.To
		}
		if whole := shown.Record.FinishedAt.Sub(*shown.Record.StartedAt); at != whole {
			t.Errorf("run %d took %s: %s", show, whole, steps(shown.Path))
		}
		for _, l := range shown.Lines {
			attemptsFit(t, &l)
		}
	}
}

func attemptsFit(t *testing.T, l *Line) {
	t.Helper()
	at := l.Ready
	for _, a := range l.Attempts {
		if a.From < at || a.To < a.From || a.To > l.To {
			t.Errorf("%s[%s], ready at %s, from %s to %s: %+v", l.Task, l.Key, l.Ready, l.From, l.To, l.Attempts)
		}
		at = a.To
	}
	if n := len(l.Attempts); n > 0 && (l.Attempts[0].From != l.From || l.Attempts[n-1].To != l.To) {
		t.Errorf("%s[%s] from %s to %s: %+v", l.Task, l.Key, l.From, l.To, l.Attempts)
	}
}
