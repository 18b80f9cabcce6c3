package flows

import (
	"testing"
	"time"

	"github.com/hashicorp/hcl/v2"
)

func TestInstantInThePast(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"f.hcl": `
flow "a" {
  trigger "schedule" "once" {
    at = "2026-01-01T00:00:00Z"
  }
  task "t" {
    plugin = "./greet.wasm"
  }
}`})
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		now  time.Time
		want int
	}{{at.Add(time.Second), 1}, {at.Add(-time.Second), 0}, {time.Time{}, 0}} {
		_, diags := Load(t.Context(), []string{dir}, Options{Catalog: modules, Now: c.now})
		if len(diags) != c.want || diags.HasErrors() {
			t.Errorf("at %s: %v", c.now, diags)
		}
		for _, d := range diags {
			if d.Severity != hcl.DiagWarning || RuleOf(d) != RuleSchedule || d.Subject.Start.Line != 4 {
				t.Errorf("%v", d)
			}
		}
	}
}
