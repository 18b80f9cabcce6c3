package flows

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const limitsHCL = `
variable "rate" {
  default = "100/15m"
}
limit "db" {
  concurrency = 2
}
limit "api" {
  concurrency = 4
  rate        = var.rate
}
limit "unused" {
  rate = "1/h"
}
flow "f" {
  task "both" {
    plugin = "./greet.wasm"
    limit  = [limit.db, limit.api]
  }
  task "free" {
    plugin = "./greet.wasm"
  }
  finally {
    task "one" {
      plugin = "./greet.wasm"
      limit  = limit.db
    }
  }
}`

func limitNames(limits []*Limit) string {
	var names []string
	for _, l := range limits {
		names = append(names, l.Name)
	}
	return strings.Join(names, " ")
}

// Two folders may have limits of one name: they are different ones.
func TestLimits(t *testing.T) {
	t.Parallel()
	set := load(t, map[string]string{"a.hcl": limitsHCL, "sub/b.hcl": limitsHCL}, Options{Catalog: modules})
	if got, want := limitNames(set.Limits), "api db sub/api sub/db sub/unused unused"; got != want {
		t.Errorf("limits %s, want %s", got, want)
	}
	for prefix, f := range map[string]*Flow{"": set.Flow("f"), "sub/": set.Flow("sub/f")} {
		for task, want := range map[string]string{"both": prefix + "api " + prefix + "db", "free": "", "one": prefix + "db"} {
			if got := limitNames(f.task(t, task).LimitedBy); got != want {
				t.Errorf("%s of %s is limited by %q, want %q", task, f.Name, got, want)
			}
		}
		if got, want := limitNames(f.LimitedBy), prefix+"api "+prefix+"db"; got != want {
			t.Errorf("%s is limited by %q, want %q", f.Name, got, want)
		}
		api := f.LimitedBy[0]
		if api.Concurrency != 4 || api.Rate != (Rate{100, 15 * time.Minute}) {
			t.Errorf("%+v", api)
		}
	}
}

// Files that are given by themselves are modules whose names begin at one place.
func TestALimitInTwoFiles(t *testing.T) {
	t.Parallel()
	const source = "limit \"api\" {\n  concurrency = 1\n}\n"
	dir := folder(t, map[string]string{"a.hcl": source + smallFlow("a"), "b.hcl": source + smallFlow("b")})
	set, diags := Load(t.Context(), []string{dir + "/a.hcl", dir + "/b.hcl"}, Options{Catalog: modules})
	if shown := text(set, diags); len(diags) != 1 || RuleOf(diags[0]) != RuleDuplicate || !strings.Contains(shown, "a.hcl:1") || !strings.Contains(shown, "b.hcl line 1") {
		t.Errorf("%s", shown)
	}
}

func TestLimitsInJSON(t *testing.T) {
	t.Parallel()
	for limit, want := range map[string]string{`"limit.api"`: "api", `["limit.db", "limit.api"]`: "api db", `[]`: ""} {
		f := onlyFlow(t, load(t, map[string]string{"a.hcl.json": `{
			"limit": {"api": {"rate": "5/s"}, "db": {"concurrency": 1}},
			"flow": {"f": {"task": {"t": {"plugin": "./greet.wasm", "limit": ` + limit + `}}}}
		}`}, Options{Catalog: modules}))
		if got := limitNames(f.Tasks[0].LimitedBy); got != want {
			t.Errorf("%s: %q, want %q", limit, got, want)
		}
	}
}

// What a flow uses of its folder tells versions of it apart.
func TestALimitIsAPartOfTheFlowsThatUseIt(t *testing.T) {
	t.Parallel()
	blocks := func(source string) map[string]string {
		set := load(t, map[string]string{"flow.hcl": source}, Options{})
		return set.Blocks()[onlyFlow(t, set).Name]
	}
	before := blocks(limitsHCL)
	after := blocks(strings.NewReplacer("concurrency = 2", "concurrency = 3", `"1/h"`, `"2/h"`).Replace(limitsHCL))
	var changed []string
	for _, name := range keys(after) {
		if before[name] != after[name] {
			changed = append(changed, name)
		}
	}
	if diff := cmp.Diff([]string{"limit db"}, changed); diff != "" {
		t.Error(diff)
	}
}

func TestRates(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Rate{
		"10/s": {10, time.Second}, "600/m": {600, time.Minute}, "1/h": {1, time.Hour}, "10000/24h": {10_000, 24 * time.Hour},
		"100/15m": {100, 15 * time.Minute}, "1/1ms": {1, time.Millisecond}, "3/1h40m": {3, 100 * time.Minute}, "3/1m40s": {3, 100 * time.Second},
	} {
		if got, err := parseRate(text); err != nil || got != want || got.String() != text {
			t.Errorf("%s: %v, written %s, %v", text, got, got, err)
		}
	}
	for _, text := range []string{
		"", "/", "10", "10/", "/s", "0/s", "-1/s", "+1/s", "1.5/s", "10001/s", "10/d", "10/0s", "10/-1s", "10/1us", "10/25h", "10 /s", "10/ s", "10/s/s", "99999999999999999999/s",
	} {
		if got, err := parseRate(text); err == nil {
			t.Errorf("%q is taken for %v", text, got)
		}
	}
}

// FuzzRate holds that a rate is within its bounds and is read again as it is
// written.
func FuzzRate(f *testing.F) {
	for _, seed := range []string{"10/s", "100/15m", "1/1h0m1s", "0/s", "1/1e3s", "5/0.5s"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := parseRate(text)
		if err != nil {
			return
		}
		if again, err := parseRate(r.String()); err != nil || again != r || r.Count < 1 || r.Count > MaxRateCount || r.Per < minRateTime || r.Per > maxRateTime {
			t.Errorf("%q is %+v, and %s is %+v, %v", text, r, r, again, err)
		}
	})
}
