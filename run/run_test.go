package run

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestIDsSortByTimeAndParse(t *testing.T) {
	t.Parallel()
	var ids []ID
	for i := range 50 {
		ids = append(ids, NewID(t0.Add(time.Duration(i)*time.Millisecond)))
	}
	if !slices.IsSorted(ids) {
		t.Errorf("ids of later times sort earlier: %v", ids)
	}
	for _, id := range ids {
		if got, err := ParseID(string(id)); err != nil || got != id {
			t.Errorf("ParseID(%q) = %q, %v", id, got, err)
		}
	}
	if a, b := NewID(t0), NewID(t0); a == b {
		t.Error("two ids of one instant are equal")
	}
}

func TestDefaultFunction(t *testing.T) {
	t.Parallel()
	for want, names := range map[string][]string{"only": {"only"}, "main": {"a", "main"}, "": {"a", "b"}} {
		var s Signature
		for _, name := range names {
			s.Functions = append(s.Functions, FunctionSignature{Name: name})
		}
		if got := s.Default(); got != want {
			t.Errorf("of %v the default is %q", names, got)
		}
	}
}

// The example of the ULID specification's reference implementations:
// 1469918176385 ms is encoded as 01ARYZ6S41.
func TestIDEncodesItsTime(t *testing.T) {
	t.Parallel()
	if id := NewID(time.UnixMilli(1469918176385)); id[:10] != "01ARYZ6S41" {
		t.Errorf("id %s does not start with 01ARYZ6S41", id)
	}
}

func TestParseIDRefuses(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"", "01ARYZ6S41", "01ARYZ6S4101ARYZ6S4101ARYZu", "81ARYZ6S4101ARYZ6S4101ARYZ", "01ARYZ6S41-1ARYZ6S4101ARYZ"} {
		if _, err := ParseID(s); err == nil {
			t.Errorf("ParseID(%q) succeeded", s)
		}
	}
}

func TestRetryPolicyAllows(t *testing.T) {
	t.Parallel()
	three := RetryPolicy{Attempts: 3}
	failed := func(o Outcome, retryable bool) *Failure { return &Failure{Outcome: o, Retryable: retryable} }
	for _, c := range []struct {
		name        string
		policy      RetryPolicy
		failure     *Failure
		spent, lost int
		want        bool
	}{
		{"one attempt is the default", RetryPolicy{}, failed(OutcomeFailed, true), 1, 0, false},
		{"attempts are left", three, failed(OutcomeFailed, true), 2, 0, true},
		{"all attempts are spent", three, failed(OutcomeFailed, true), 3, 0, false},
		{"the failure is permanent", three, failed(OutcomeFailed, false), 1, 0, false},
		{"rejected for good", three, failed(OutcomeRejected, false), 1, 0, false},
		{"rejected because the host is busy", three, failed(OutcomeRejected, true), 1, 0, true},
		{"denied", three, failed(OutcomeDenied, true), 1, 0, false},
		{"canceled", three, failed(OutcomeCanceled, true), 1, 0, false},
		{"a lost attempt needs no policy", RetryPolicy{}, failed(OutcomeLost, true), 1, 1, true},
		{"lost attempts do not count", three, failed(OutcomeFailed, true), 4, 2, true},
		{"lost too often", three, failed(OutcomeLost, true), MaxLost, MaxLost, false},
	} {
		if got := c.policy.Allows(c.failure, c.spent, c.lost); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

func TestRetryPolicyLeft(t *testing.T) {
	t.Parallel()
	three := RetryPolicy{Attempts: 3}
	for _, c := range []struct {
		outcome     Outcome
		retryable   bool
		spent, lost int
		want        bool
	}{
		{OutcomeFailed, false, 2, 0, true},
		{OutcomeFailed, true, 2, 0, true},
		{OutcomeRejected, false, 4, 2, true},
		{OutcomeTrapped, true, 3, 0, false},
		{OutcomeDenied, true, 1, 0, false},
		{OutcomeCanceled, true, 1, 0, false},
		{OutcomeLost, false, MaxLost, MaxLost - 1, true},
		{OutcomeLost, true, MaxLost, MaxLost, false},
	} {
		if got := three.Left(&Failure{Outcome: c.outcome, Retryable: c.retryable}, c.spent, c.lost); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

func TestRetryPolicyDelays(t *testing.T) {
	t.Parallel()
	ms := time.Millisecond
	for _, c := range []struct {
		policy RetryPolicy
		u      float64
		want   []time.Duration
	}{
		{RetryPolicy{}, 0, []time.Duration{time.Second, 2 * time.Second, 4 * time.Second}},
		{RetryPolicy{Delay: 100 * ms, Max: 250 * ms}, 0, []time.Duration{100 * ms, 200 * ms, 250 * ms, 250 * ms}},
		{RetryPolicy{Delay: 100 * ms, Backoff: Constant}, 0, []time.Duration{100 * ms, 100 * ms, 100 * ms}},
		{RetryPolicy{Delay: 100 * ms, Jitter: 0.5}, 0.5, []time.Duration{75 * ms, 150 * ms}},
	} {
		for i, want := range c.want {
			if got := c.policy.After(i+1, c.u); got != want {
				t.Errorf("%+v after %d attempts: %s, want %s", c.policy, i+1, got, want)
			}
		}
	}
	if got := (RetryPolicy{}).After(5000, 0); got != DefaultRetryMax {
		t.Errorf("after 5000 attempts: %s, want the cap", got)
	}
}

func TestDefinitionDigestCoversEverything(t *testing.T) {
	t.Parallel()
	base := func() *Definition {
		return &Definition{
			Prefix: "p/", Files: map[string][]byte{"a": []byte("b")},
			Vars: map[string]json.RawMessage{"v": json.RawMessage(`1`)}, Plugins: map[string]string{"s": "d"},
		}
	}
	if a, b := base(), base(); a.Digest() != b.Digest() {
		t.Fatal("the digest is not stable")
	}
	for name, change := range map[string]func(*Definition){
		"folder":    func(d *Definition) { d.Folder = "/flows" },
		"prefix":    func(d *Definition) { d.Prefix = "q/" },
		"file":      func(d *Definition) { d.Files["a"] = []byte("c") },
		"file name": func(d *Definition) { d.Files = map[string][]byte{"ab": nil} },
		"var":       func(d *Definition) { d.Vars["v"] = json.RawMessage(`2`) },
		"plugin":    func(d *Definition) { d.Plugins["s"] = "e" },
		"new file":  func(d *Definition) { d.Files["z"] = nil },
	} {
		d := base()
		change(d)
		if d.Digest() == base().Digest() {
			t.Errorf("a changed %s does not change the digest", name)
		}
	}
}

// The record is what other systems parse: its form must not change by accident.
func TestRecordJSON(t *testing.T) {
	t.Parallel()
	done := ended(1, "price", OutcomeSucceeded)
	done.Output = json.RawMessage(`{"total":3}`)
	_, r := story(t,
		&Submitted{Flow: "orders", Trigger: Trigger{Kind: TriggerManual, Time: t0, Payload: json.RawMessage(`{}`)}},
		&Started{}, &TaskEnded{TaskRef: TaskRef{Task: "review"}, State: Skipped},
		attempt(1, "price"), done,
	)
	got, err := json.MarshalIndent(r.Record([]string{"price", "review", "ship"}), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	const want = `{
  "run": "r",
  "flow": "orders",
  "state": "running",
  "params": {},
  "trigger": {
    "kind": "manual",
    "time": "2026-03-29T01:02:03.000456789Z",
    "payload": {}
  },
  "output": null,
  "error": null,
  "created_at": "2026-03-29T01:02:03.000456789Z",
  "started_at": "2026-03-29T01:02:04.000456789Z",
  "finished_at": null,
  "duration_ms": null,
  "tasks": [
    {
      "task": "price",
      "key": null,
      "state": "succeeded",
      "outcome": "succeeded",
      "attempts": 1,
      "started_at": "2026-03-29T01:02:06.000456789Z",
      "finished_at": "2026-03-29T01:02:07.000456789Z",
      "duration_ms": 1000,
      "module": "sha256:m",
      "input": 1,
      "output": {
        "total": 3
      },
      "error": null
    },
    {
      "task": "review",
      "key": null,
      "state": "skipped",
      "outcome": null,
      "attempts": 0,
      "started_at": null,
      "finished_at": "2026-03-29T01:02:05.000456789Z",
      "duration_ms": null,
      "input": null,
      "output": null,
      "error": null
    },
    {
      "task": "ship",
      "key": null,
      "state": "waiting",
      "outcome": null,
      "attempts": 0,
      "started_at": null,
      "finished_at": null,
      "duration_ms": null,
      "input": null,
      "output": null,
      "error": null
    }
  ]
}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("record differs (-want +got):\n%s", diff)
	}
}
