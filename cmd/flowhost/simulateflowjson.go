package main

import (
	"time"

	"github.com/flowhost/flowhost/internal/flowsim"
	"github.com/flowhost/flowhost/run"
)

// What simulate --flow --json prints. It is stable: fields are added to it, and
// none changes what it means. Times are in milliseconds; those of a run count from
// its beginning.
type (
	trialFile struct {
		Flow         string           `json:"flow"`
		Assumed      trialAssumedJSON `json:"assumed"`
		Runs         int              `json:"runs"`
		Succeeded    int              `json:"succeeded"`
		Failed       int              `json:"failed"`
		NotEvaluated int              `json:"not_evaluated"` // these count in none of the following
		Unfinished   int              `json:"unfinished"`
		Duration     *spreadJSON      `json:"duration"` // null when no run counts
		Critical     []criticalJSON   `json:"critical_path"`
		Failures     []failuresJSON   `json:"failures"`
		Expressions  []expressionJSON `json:"expressions"` // that could not be evaluated
		Shown        *shownJSON       `json:"shown"`       // null when that run has not ended
	}
	trialAssumedJSON struct {
		Seed        uint64            `json:"seed"`
		Workers     int               `json:"workers"`
		Mocks       string            `json:"mocks,omitempty"`
		HistoryRuns int               `json:"history_runs"`
		Tasks       []taskSourcesJSON `json:"tasks"` // that were called
	}
	taskSourcesJSON struct {
		Task   string         `json:"task"`
		Takes  flowsim.Source `json:"takes"`            // drawn, history, mock, stated
		Ends   flowsim.Source `json:"ends"`             // the same
		Output flowsim.Source `json:"output,omitempty"` // history, mock, schema, null
	}
	spreadJSON struct {
		Runs   int       `json:"runs"`
		MinMS  float64   `json:"min_ms"`
		MeanMS float64   `json:"mean_ms"`
		P50MS  float64   `json:"p50_ms"`
		P90MS  float64   `json:"p90_ms"`
		P99MS  float64   `json:"p99_ms"`
		MaxMS  float64   `json:"max_ms"`
		Bins   []binJSON `json:"histogram"`
	}
	binJSON struct {
		FromMS float64 `json:"from_ms"`
		ToMS   float64 `json:"to_ms"` // not included
		Runs   int     `json:"runs"`
	}
	criticalJSON struct {
		Task   string  `json:"task"`
		Runs   int     `json:"runs"`    // of which it was on the critical path
		Share  float64 `json:"share"`   // of the run's duration, over all runs
		TookMS float64 `json:"took_ms"` // on average, where it was on it
	}
	failuresJSON struct {
		Task string `json:"task,omitempty"`
		Code string `json:"code"`
		Runs int    `json:"runs"`
	}
	expressionJSON struct {
		At      string `json:"at"`
		Task    string `json:"task,omitempty"`
		Message string `json:"message"`
		Runs    int    `json:"runs"`
	}
	shownJSON struct {
		Number     int          `json:"number"`
		State      run.State    `json:"state"`
		DurationMS float64      `json:"duration_ms"`
		Critical   []stepJSON   `json:"critical_path"`
		Tasks      []lineJSON   `json:"tasks"`
		Error      *run.Failure `json:"error"`
	}
	stepJSON struct {
		Task   string  `json:"task"`
		FromMS float64 `json:"from_ms"`
		ToMS   float64 `json:"to_ms"`
	}
	lineJSON struct {
		Task     string        `json:"task"`
		Key      *string       `json:"key"`
		State    run.State     `json:"state"`
		Critical bool          `json:"critical"`
		ReadyMS  float64       `json:"ready_ms"` // when what it depends on had ended
		FromMS   *float64      `json:"from_ms"`  // null for one that did not begin
		ToMS     float64       `json:"to_ms"`
		Attempts []attemptJSON `json:"attempts"`
	}
	attemptJSON struct {
		FromMS  float64     `json:"from_ms"`
		ToMS    float64     `json:"to_ms"`
		Outcome run.Outcome `json:"outcome"`
	}
)

func trialJSON(a *trialAssumptions, r *flowsim.Report) trialFile {
	out := trialFile{
		Flow: a.Flow.Name, Runs: r.Runs, Succeeded: r.Succeeded, Failed: r.Failed, NotEvaluated: r.NotEvaluated, Unfinished: r.Unfinished,
		Assumed:  trialAssumedJSON{Seed: a.Seed, Workers: a.Workers, Mocks: a.mocks, Tasks: []taskSourcesJSON{}},
		Duration: spreadOf(&r.Duration), Critical: []criticalJSON{}, Failures: []failuresJSON{}, Expressions: []expressionJSON{},
		Shown: shownOf(r.Shown),
	}
	if a.History != nil {
		out.Assumed.HistoryRuns = a.History.Runs()
	}
	for _, s := range r.Sources {
		out.Assumed.Tasks = append(out.Assumed.Tasks, taskSourcesJSON{s.Task, s.Takes, s.Ends, s.Output})
	}
	for _, s := range r.Critical {
		out.Critical = append(out.Critical, criticalJSON{s.Task, s.Runs, s.Mean, ms(s.Took)})
	}
	for _, f := range r.Failures {
		out.Failures = append(out.Failures, failuresJSON{f.Task, f.Code, f.Runs})
	}
	for _, x := range r.Expressions {
		out.Expressions = append(out.Expressions, expressionJSON{x.At, x.Task, x.Message, x.Runs})
	}
	return out
}

func spreadOf(s *flowsim.Spread) *spreadJSON {
	if s.N == 0 {
		return nil
	}
	out := &spreadJSON{
		Runs: s.N, MinMS: ms(s.Min), MeanMS: ms(s.Mean), P50MS: ms(s.P50), P90MS: ms(s.P90), P99MS: ms(s.P99), MaxMS: ms(s.Max),
	}
	for _, b := range s.Bins {
		out.Bins = append(out.Bins, binJSON{ms(b.From), ms(b.To), b.N})
	}
	return out
}

func shownOf(s *flowsim.Shown) *shownJSON {
	if s == nil {
		return nil
	}
	out := &shownJSON{
		Number: s.Number, State: s.Record.State, DurationMS: *s.Record.DurationMS, Critical: []stepJSON{}, Tasks: []lineJSON{}, Error: s.Record.Error,
	}
	for _, step := range s.Path {
		out.Critical = append(out.Critical, stepJSON{step.Task, ms(step.From), ms(step.To)})
	}
	for _, l := range s.Lines {
		line := lineJSON{Task: l.Task, State: l.State, Critical: l.Critical, ReadyMS: ms(l.Ready), ToMS: ms(l.To), Attempts: []attemptJSON{}}
		if l.Key != "" {
			line.Key = &l.Key
		}
		if l.Began {
			line.FromMS = msOf(l.From)
		}
		for _, a := range l.Attempts {
			line.Attempts = append(line.Attempts, attemptJSON{ms(a.From), ms(a.To), a.Outcome})
		}
		out.Tasks = append(out.Tasks, line)
	}
	return out
}

func msOf(d time.Duration) *float64 {
	f := ms(d)
	return &f
}
