package intake_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/bus/intake"
	"github.com/flowhost/flowhost/bus/internal/bustest"
	"github.com/flowhost/flowhost/bus/natsd"
	"github.com/flowhost/flowhost/run"
)

var (
	errNoSchedule = errors.New("no such schedule")
	errPaused     = errors.New("paused already")
	errOverlap    = errors.New("run " + string(bustest.OpenRun) + " is going")
	errTooMany    = errors.New("too many times")

	nightly = run.ScheduleRef{Flow: "billing/invoice", Trigger: "nightly"}
	hourly  = run.ScheduleRef{Flow: "orders", Trigger: "hourly"}
	daily   = run.ScheduleRef{Flow: "orders", Trigger: "daily"}

	noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
)

// schedules stands for an engine with three schedules, of which nightly is paused,
// and two backfills. Each hour is a nominal time.
type schedules struct {
	mu     sync.Mutex
	done   []string // what was asked for
	reason string   // of the pause
	state  run.State
}

func (s *schedules) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done = append(s.done, fmt.Sprintf(format, args...))
}

func (s *schedules) asked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.done)
}

func (s *schedules) Schedules(context.Context) ([]run.ScheduleStatus, error) {
	var all []run.ScheduleStatus
	for _, ref := range []run.ScheduleRef{nightly, daily, hourly} {
		all = append(all, run.ScheduleStatus{
			Schedule: run.Schedule{ScheduleRef: ref, Spec: "secret", Decided: noon, Fired: 3}, Expression: "0 * * * *", Zone: "UTC", Enabled: true, Open: []run.ID{},
		})
	}
	all[0].Pause = &run.Pause{Reason: s.reason, At: noon}
	all[2].Next, all[2].Due, all[2].Open = noon.Add(time.Hour), noon.Add(time.Hour), []run.ID{bustest.OpenRun}
	return all, nil
}

func (s *schedules) Pause(_ context.Context, ref run.ScheduleRef, reason string) ([]run.ScheduleRef, error) {
	s.note("pause %s %s", ref, reason)
	switch {
	case ref == nightly:
		return nil, errPaused
	case ref == hourly:
		return []run.ScheduleRef{hourly}, nil
	case ref == run.ScheduleRef{Flow: "orders"}:
		return []run.ScheduleRef{daily, hourly}, nil
	}
	return nil, errNoSchedule
}

func (s *schedules) Resume(_ context.Context, ref run.ScheduleRef) ([]run.ScheduleRef, error) {
	s.note("resume %s", ref)
	return []run.ScheduleRef{nightly}, nil
}

func (s *schedules) Fire(_ context.Context, ref run.ScheduleRef, r run.Request) (run.Receipt, error) {
	s.note("fire %s %s %s", ref, r.Params["n"], r.Key)
	if ref == daily {
		return run.Receipt{}, errOverlap
	}
	return run.Receipt{Run: bustest.RunID, Accepted: true, Repeated: r.Key == "known"}, nil
}

func (s *schedules) Backfill(_ context.Context, r run.BackfillRequest) (run.BackfillPlan, error) {
	s.note("backfill %s %s %s, %d at once, reverse %t, missing %t", r.Schedule, r.From.Format(time.DateOnly), r.To.Format(time.DateOnly), r.MaxActive, r.Reverse, r.OnlyMissing)
	plan := run.BackfillPlan{ID: r.ID, Until: noon}
	for at := r.From.Truncate(time.Hour); at.Before(r.To); at = at.Add(time.Hour) {
		if !at.Before(r.From) {
			plan.Times = append(plan.Times, run.BackfillTime{Time: at, Run: bustest.DoneRun, State: s.state})
		}
	}
	if plan.Total = len(plan.Times); plan.Total > run.MaxBackfillTimes {
		return plan, errTooMany
	}
	if r.Reverse {
		slices.Reverse(plan.Times)
	}
	return plan, nil
}

func (s *schedules) Backfills(context.Context) ([]run.Backfill, error) {
	return []run.Backfill{
		{ID: bustest.DoneRun, Schedule: daily, Total: 5, Succeeded: 2, Failed: 1, StartedAt: noon, EndedAt: noon.Add(time.Minute), Reason: "enough"},
		{ID: bustest.OpenRun, Schedule: hourly, Total: 4, Times: []time.Time{noon}, Active: []run.ID{bustest.RunID}, Succeeded: 1, Rejected: 1, MaxActive: 1, StartedAt: noon},
	}, nil
}

func (s *schedules) CancelBackfill(_ context.Context, id run.ID, reason string) error {
	s.note("cancel %s %s", id, reason)
	if id == bustest.DoneRun {
		return bustest.ErrFinished
	}
	return nil
}

func schedulesConfig(s *schedules) intake.Config {
	codes := map[error]string{
		errNoSchedule: api.CodeUnknownSchedule, errPaused: api.CodePaused, errOverlap: api.CodeOverlap,
		errTooMany: api.CodeTooManyTimes, bustest.ErrFinished: api.CodeFinished,
	}
	return intake.Config{Schedules: s, Backfills: s, Grace: 5 * time.Second, Code: func(err error) string { return codes[err] }}
}

func TestAPISchedules(t *testing.T) {
	t.Parallel()
	nc := bustest.Connect(t, bustest.StartServer(t, natsd.Config{}))
	s := &schedules{reason: "<why>", state: run.Succeeded}
	bustest.RunIntake(t, nc, &bustest.Starter{}, nil, schedulesConfig(s))
	const params = `{"error":{"code":"params"`
	status := `{"flow":"billing/invoice","trigger":"nightly","decided":"2026-01-02T12:00:00Z","fired":3,"failures":0,` +
		`"pause":{"reason":"<why>","at":"2026-01-02T12:00:00Z"},"expression":"0 * * * *","timezone":"UTC","enabled":true,"open":[]}`
	day := `"from":"2026-01-01T00:00:00Z","to":"2026-01-02T00:00:00Z"`
	for name, tt := range map[string]struct {
		verb, body   string
		header       nats.Header
		answer, code string // the answer's beginning
	}{
		"schedules":              {verb: "schedules", answer: `{"schedules":[` + status + `,{"flow":"orders","trigger":"daily"`},
		"schedules: of a flow":   {verb: "schedules", body: `{"flow":"billing/invoice"}`, answer: `{"schedules":[` + status + `]}`},
		"schedules: one":         {verb: "schedules", body: `{"flow":"orders","trigger":"hourly"}`, answer: `{"schedules":[{"flow":"orders","trigger":"hourly","decided":"2026-01-02T12:00:00Z","fired":3,"failures":0,"expression":"0 * * * *","timezone":"UTC","enabled":true,"next":"2026-01-02T13:00:00Z","due":"2026-01-02T13:00:00Z","open":["` + string(bustest.OpenRun) + `"]}]}`},
		"schedules: after":       {verb: "schedules", body: `{"after":"orders/hourly"}`, answer: `{"schedules":[]}`},
		"schedules: no flow":     {verb: "schedules", body: `{"trigger":"hourly"}`, answer: params, code: "params"},
		"schedules: no cursor":   {verb: "schedules", body: `{"after":"orders"}`, answer: params, code: "params"},
		"pause":                  {verb: "pause", body: `{"flow":"orders","trigger":"hourly","reason":"why"}`, answer: `{"schedules":[{"flow":"orders","trigger":"hourly"}]}`},
		"pause: flow":            {verb: "pause", body: `{"flow":"orders","reason":"why"}`, answer: `{"schedules":[{"flow":"orders","trigger":"daily"},{"flow":"orders","trigger":"hourly"}]}`},
		"pause: again":           {verb: "pause", body: `{"flow":"billing/invoice","trigger":"nightly","reason":"why"}`, answer: `{"error":{"code":"paused"`, code: "paused"},
		"pause: unknown":         {verb: "pause", body: `{"flow":"x","reason":"why"}`, answer: `{"error":{"code":"unknown_schedule"`, code: "unknown_schedule"},
		"pause: no reason":       {verb: "pause", body: `{"flow":"orders","reason":" "}`, answer: params, code: "params"},
		"pause: no flow":         {verb: "pause", body: `{"reason":"why"}`, answer: params, code: "params"},
		"pause: a long story":    {verb: "pause", body: `{"flow":"orders","reason":"` + strings.Repeat("x", 2000) + `"}`, answer: params, code: "params"},
		"pause: misspelt":        {verb: "pause", body: `{"flow":"orders","triger":"hourly","reason":"why"}`, answer: `{"error":{"code":"payload"`, code: "payload"},
		"resume":                 {verb: "resume", body: `{"flow":"billing/invoice"}`, answer: `{"schedules":[{"flow":"billing/invoice","trigger":"nightly"}]}`},
		"resume: no flow":        {verb: "resume", answer: params, code: "params"},
		"fire":                   {verb: "fire", body: `{"flow":"orders","trigger":"hourly","params":{"n":1.50},"key":"k"}`, answer: `{"run":"` + string(bustest.RunID) + `"}`},
		"fire: repeated":         {verb: "fire", body: `{"flow":"orders","trigger":"hourly","key":"known"}`, answer: `{"run":"` + string(bustest.RunID) + `","repeated":true}`},
		"fire: wait":             {verb: "fire", body: `{"flow":"orders","trigger":"hourly"}`, header: nats.Header{bus.HeaderWait: {"10s"}}, answer: `{"run":"` + string(bustest.RunID) + `","flow":"orders","state":"succeeded"`},
		"fire: overlap":          {verb: "fire", body: `{"flow":"orders","trigger":"daily"}`, answer: `{"error":{"code":"overlap","message":"run ` + string(bustest.OpenRun), code: "overlap"},
		"fire: no trigger":       {verb: "fire", body: `{"flow":"orders"}`, answer: params, code: "params"},
		"backfill":               {verb: "backfill", body: `{"id":"` + string(bustest.OpenRun) + `","flow":"orders","trigger":"hourly",` + day + `,"max_active":3}`, answer: `{"id":"` + string(bustest.OpenRun) + `","total":24,"until":"2026-01-02T12:00:00Z"}`},
		"backfill: dry run":      {verb: "backfill", body: `{"flow":"orders","trigger":"hourly",` + day + `,"dry_run":true,"reverse":true,"only_missing":true}`, answer: `{"total":24,"times":[{"time":"2026-01-01T23:00:00Z","run":"` + string(bustest.DoneRun) + `","state":"succeeded"},`},
		"backfill: too many":     {verb: "backfill", body: `{"flow":"orders","trigger":"hourly","from":"2020-01-01T00:00:00Z","to":"2026-01-02T00:00:00Z"}`, answer: `{"error":{"code":"too_many_times"`, code: "too_many_times"},
		"backfill: no range":     {verb: "backfill", body: `{"flow":"orders","trigger":"hourly","from":"2020-01-01T00:00:00Z"}`, answer: params, code: "params"},
		"backfill: backwards":    {verb: "backfill", body: `{"flow":"orders","trigger":"hourly","to":"2026-01-01T00:00:00Z","from":"2026-01-02T00:00:00Z"}`, answer: params, code: "params"},
		"backfill: nothing":      {verb: "backfill", body: `{"flow":"orders","trigger":"hourly","to":"2026-01-01T00:00:00Z","from":"2026-01-01T00:00:00Z"}`, answer: params, code: "params"},
		"backfill: no id":        {verb: "backfill", body: `{"id":"x","flow":"orders","trigger":"hourly",` + day + `}`, answer: params, code: "params"},
		"backfill: negative":     {verb: "backfill", body: `{"flow":"orders","trigger":"hourly",` + day + `,"max_active":-1}`, answer: params, code: "params"},
		"backfill: no day":       {verb: "backfill", body: `{"flow":"orders","trigger":"hourly","from":"2026-01-01","to":"2026-01-02"}`, answer: `{"error":{"code":"payload"`, code: "payload"},
		"backfills":              {verb: "backfills", answer: `{"backfills":[{"id":"01HZXW0000000000000000D0NE","flow":"orders","trigger":"daily","total":5,"done":3,"succeeded":2,"failed":1,"canceled":0,"rejected":0,"active":[],"max_active":0,"started_at":"2026-01-02T12:00:00Z","ended_at":"2026-01-02T12:01:00Z","reason":"enough"},{"id":"01HZXW0000000000000000CPEN"`},
		"backfills: one":         {verb: "backfills", body: `{"id":"` + string(bustest.OpenRun) + `"}`, answer: `{"backfills":[{"id":"` + string(bustest.OpenRun) + `","flow":"orders","trigger":"hourly","total":4,"done":2,"succeeded":1,"failed":0,"canceled":0,"rejected":1,"active":["` + string(bustest.RunID) + `"],"max_active":1,"started_at":"2026-01-02T12:00:00Z"}]}`},
		"backfills: none":        {verb: "backfills", body: `{"before":"` + string(bustest.OpenRun) + `"}`, answer: `{"backfills":[]}`},
		"cancel_backfill":        {verb: "cancel_backfill", body: `{"id":"` + string(bustest.OpenRun) + `","reason":"why"}`, answer: `{"id":"` + string(bustest.OpenRun) + `"}`},
		"cancel_backfill: ended": {verb: "cancel_backfill", body: `{"id":"` + string(bustest.DoneRun) + `"}`, answer: `{"error":{"code":"finished"`, code: "finished"},
		"cancel_backfill: no id": {verb: "cancel_backfill", answer: params, code: "params"},
	} {
		t.Run(name, func(t *testing.T) {
			answer, code := bustest.Request(t, nc, bus.APISubject(tt.verb), tt.body, tt.header)
			if !strings.HasPrefix(answer, tt.answer) || code != tt.code {
				t.Errorf("answer %s, code %q; want %s…, %q", answer, code, tt.answer, tt.code)
			}
			if !json.Valid([]byte(answer)) {
				t.Error("the answer is not JSON")
			}
		})
	}
	for _, want := range []string{
		"pause orders/hourly why", "pause orders/ why", "resume billing/invoice/", "fire orders/hourly 1.50 k",
		"backfill orders/hourly 2026-01-01 2026-01-02, 3 at once, reverse false, missing false",
		"backfill orders/hourly 2026-01-01 2026-01-02, 0 at once, reverse true, missing true", "cancel " + string(bustest.OpenRun) + " why",
	} {
		if !slices.Contains(s.asked(), want) {
			t.Errorf("the engine was not asked %q but %q", want, s.asked())
		}
	}
}

// What the host cannot do is not offered, and starts nothing while it is not ready.
func TestAPIWithoutSchedules(t *testing.T) {
	t.Parallel()
	verbs := []string{"schedules", "pause", "resume", "fire", "backfill", "backfills", "cancel_backfill"}
	nc := bustest.Connect(t, bustest.StartServer(t, natsd.Config{}))
	stop := bustest.RunIntake(t, nc, &bustest.Starter{}, nil, intake.Config{})
	for _, verb := range verbs {
		if _, err := nc.Request(bus.APISubject(verb), nil, bustest.Patience); !errors.Is(err, nats.ErrNoResponders) {
			t.Errorf("%s: %v, want %v", verb, err, nats.ErrNoResponders)
		}
	}
	stop()
	cfg := schedulesConfig(&schedules{})
	cfg.Ready = func() error { return errors.New("the disk is full") }
	bustest.RunIntake(t, nc, &bustest.Starter{}, nil, cfg)
	const body = `{"flow":"orders","trigger":"hourly"`
	for _, ask := range []struct{ verb, rest, code string }{
		{"fire", `}`, api.CodeUnavailable},
		{"backfill", `,"from":"2026-01-01T00:00:00Z","to":"2026-01-02T00:00:00Z"}`, api.CodeUnavailable},
		{"backfill", `,"from":"2026-01-01T00:00:00Z","to":"2026-01-02T00:00:00Z","dry_run":true}`, ""},
		{"pause", `,"reason":"the disk is full"}`, ""},
	} {
		if answer, code := bustest.Request(t, nc, bus.APISubject(ask.verb), body+ask.rest, nil); code != ask.code {
			t.Errorf("%s%s: %s", ask.verb, ask.rest, answer)
		}
	}
}

// Answers that are too large for a message come in parts, and the client puts them
// together.
func TestClientSchedules(t *testing.T) {
	t.Parallel()
	s := &schedules{reason: strings.Repeat("x", 5<<20), state: run.State(strings.Repeat("x", 1<<20))}
	client, _ := served(t, &bustest.Starter{}, schedulesConfig(s))
	ctx := t.Context()
	all, err := client.Schedules(ctx, run.ScheduleRef{})
	if err != nil || len(all) != 3 || all[0].ScheduleRef != nightly || all[0].Pause == nil || all[2].Open[0] != bustest.OpenRun || !all[2].Next.Equal(noon.Add(time.Hour)) {
		t.Errorf("schedules: %d, %v", len(all), err)
	}
	for _, reverse := range []bool{false, true} {
		plan, err := client.Backfill(ctx, run.BackfillRequest{Schedule: hourly, From: noon, To: noon.Add(24 * time.Hour), Reverse: reverse, DryRun: true})
		if err != nil || plan.Total != 24 {
			t.Fatalf("reverse %t: %d times, %v", reverse, plan.Total, err)
		}
		var got, want []time.Time
		for i := range 24 {
			want = append(want, noon.Add(time.Duration(i)*time.Hour))
		}
		for _, at := range plan.Times {
			got = append(got, at.Time)
		}
		if reverse {
			slices.Reverse(want)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("reverse %t (-want +got):\n%s", reverse, diff)
		}
	}
	if plan, err := client.Backfill(ctx, run.BackfillRequest{ID: bustest.OpenRun, Schedule: hourly, From: noon, To: noon.Add(time.Hour)}); err != nil || plan.ID != bustest.OpenRun || plan.Total != 1 || plan.Times != nil {
		t.Errorf("backfill: %+v, %v", plan, err)
	}
	backfills, err := client.Backfills(ctx, "")
	if err != nil || len(backfills) != 2 || !backfills[0].Over() || backfills[1].Over() {
		t.Errorf("backfills: %+v, %v", backfills, err)
	}
	if err := client.CancelBackfill(ctx, bustest.DoneRun, ""); codeOf(err) != api.CodeFinished {
		t.Errorf("cancel: %v", err)
	}
	if done, err := client.Pause(ctx, hourly, "why"); err != nil || !slices.Equal(done, []run.ScheduleRef{hourly}) {
		t.Errorf("pause: %v, %v", done, err)
	}
	if done, err := client.Resume(ctx, nightly); err != nil || len(done) != 1 {
		t.Errorf("resume: %v, %v", done, err)
	}
	receipt, err := client.Fire(ctx, hourly, map[string]json.RawMessage{"n": json.RawMessage("1")}, "known")
	if err != nil || receipt != (run.Receipt{Run: bustest.RunID, Accepted: true, Repeated: true}) {
		t.Errorf("fire: %+v, %v", receipt, err)
	}
}
