package flowsim

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/flowhost/flowhost/run"
)

// Report is what the runs have come to.
type Report struct {
	Runs int

	// These make Runs together. A run of which an expression could not be evaluated
	// proves nothing about the flow, however it continued: it is in NotEvaluated only,
	// and does not count in what follows.
	Succeeded, Failed int
	NotEvaluated      int
	Unfinished        int // in ten years

	Duration    Spread
	Failures    []Failure    // why runs failed, the most frequent first
	Critical    []Share      // tasks by their share, the largest first
	Expressions []Expression // that could not be evaluated, the most frequent first
	Sources     []Sources    // of what calls did, in the order of the flow
	Shown       *Shown       // nil when it is not finished
}

// Failure is what runs failed for first.
type Failure struct {
	Task, Code string // Task is empty when it was none, such as the flow's timeout
	Runs       int
}

// Share is what part a task has in the durations of runs.
type Share struct {
	Task string
	Runs int           // of which it was on the critical path
	Mean float64       // share of the run's duration, 0 to 1, over all runs; those of all tasks make 1
	Took time.Duration // on average, over the runs in Runs
}

// Expression is one of the flow's files that could not be evaluated.
type Expression struct {
	At      string // "orders.hcl:14"
	Task    string // empty for an output of the flow
	Message string // of the first run
	Runs    int
}

// Shown is one run in detail.
type Shown struct {
	Number int
	Record *run.Record
	Path   []Step
	Lines  []Line
}

// book keeps account of the runs.
type book struct {
	config *Config
	Report
	durations   []time.Duration
	failures    map[Failure]int
	expressions map[string]*Expression
	shares      map[string]*share
}

type share struct {
	runs int
	part float64
	took time.Duration
}

func newBook(c *Config) *book {
	return &book{config: c, failures: map[Failure]int{}, expressions: map[string]*Expression{}, shares: map[string]*share{}}
}

func (b *book) note(t *trial) {
	b.Runs++
	r := t.record
	if r == nil {
		b.Unfinished++
		return
	}
	path, ready := criticalPath(t.config.Flow, r)
	if t.number == t.config.Show {
		b.Shown = &Shown{Number: t.number, Record: r, Path: path, Lines: timeline(r, path, ready, t.attempts)}
	}
	if b.notEvaluated(r) {
		b.NotEvaluated++
		return
	}
	if r.State == run.Succeeded {
		b.Succeeded++
	} else {
		b.Failed++
		b.failures[reasonOf(r)]++
	}
	took := r.FinishedAt.Sub(*r.StartedAt)
	b.durations = append(b.durations, took)
	b.addShares(path, took)
}

func reasonOf(r *run.Record) Failure {
	if r.Error == nil {
		return Failure{}
	}
	return Failure{Task: r.Error.Task, Code: r.Error.Code}
}

func (b *book) addShares(path []Step, whole time.Duration) {
	for _, step := range path {
		s := b.shares[step.Task]
		if s == nil {
			s = &share{}
			b.shares[step.Task] = s
		}
		s.runs++
		s.took += step.To - step.From
		if whole > 0 {
			s.part += float64(step.To-step.From) / float64(whole)
		}
	}
}

// notEvaluated notes the expressions of a run that could not be evaluated, each
// once.
func (b *book) notEvaluated(r *run.Record) bool {
	seen := map[string]bool{}
	note := func(task string, f *run.Failure) {
		if f == nil || f.Code != run.CodeExpression || seen[f.At] {
			return
		}
		seen[f.At] = true
		x := b.expressions[f.At]
		if x == nil {
			x = &Expression{At: f.At, Task: task, Message: f.Message}
			b.expressions[f.At] = x
		}
		x.Runs++
	}
	for i := range r.Tasks {
		note(r.Tasks[i].Task, r.Tasks[i].Error)
	}
	note("", r.Error)
	return len(seen) > 0
}

// report closes the account.
func (b *book) report(known *known) *Report {
	r := &b.Report
	counted := len(b.durations)
	r.Duration = newSpread(b.durations)
	for failure, runs := range b.failures {
		failure.Runs = runs
		r.Failures = append(r.Failures, failure)
	}
	slices.SortFunc(r.Failures, func(x, y Failure) int {
		return cmp.Or(y.Runs-x.Runs, cmp.Compare(x.Task, y.Task), cmp.Compare(x.Code, y.Code))
	})
	for task, s := range b.shares {
		r.Critical = append(r.Critical, Share{Task: task, Runs: s.runs, Mean: s.part / float64(counted), Took: s.took / time.Duration(s.runs)})
	}
	slices.SortFunc(r.Critical, func(x, y Share) int {
		return cmp.Or(cmp.Compare(y.Mean, x.Mean), y.Runs-x.Runs, cmp.Compare(x.Task, y.Task))
	})
	for _, at := range slices.Sorted(maps.Keys(b.expressions)) {
		r.Expressions = append(r.Expressions, *b.expressions[at])
	}
	slices.SortStableFunc(r.Expressions, func(x, y Expression) int { return y.Runs - x.Runs })
	for _, t := range b.config.Flow.AllTasks() {
		if s := known.sources[t.Name]; s != nil {
			r.Sources = append(r.Sources, *s)
		}
	}
	return r
}
