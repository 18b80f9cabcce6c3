package simulate

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/flowhost/flowhost/cmd/flowhost/internal/render"
	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/internal/flowsim"
	"github.com/flowhost/flowhost/run"
)

// showTrials writes the result of runs of a flow for people: the assumptions, one
// run, and statistics of all.
func (s *Command) showTrials(a *trialAssumptions, r *flowsim.Report) {
	fmt.Fprintf(s.Out, "%s of flow %s, each alone, with %s (%s), seed %d\n",
		render.Count(r.Runs, "run"), a.Flow.Name, render.Count(a.Workers, "worker"), a.workersFrom, a.Seed)
	s.showSources(a, r)
	s.showExpressions(r)
	s.showTimeline(r.Shown)
	s.showSpread(r)
	s.showCritical(r)
}

// showSources writes the sources of the tasks' behavior.
func (s *Command) showSources(a *trialAssumptions, r *flowsim.Report) {
	tasks := func(of func(*flowsim.Sources) flowsim.Source, from flowsim.Source) string {
		var names []string
		for i := range r.Sources {
			if of(&r.Sources[i]) == from {
				names = append(names, r.Sources[i].Task)
			}
		}
		return someNames(names)
	}
	takes := func(s *flowsim.Sources) flowsim.Source { return s.Takes }
	ends := func(s *flowsim.Sources) flowsim.Source { return s.Ends }
	output := func(s *flowsim.Sources) flowsim.Source {
		if used := func(e flows.Edge) bool { return e.From == s.Task && e.Via == flows.ViaReference }; !slices.ContainsFunc(a.Flow.Edges(), used) {
			return "" // it does not matter
		}
		return s.Output
	}
	if names := tasks(takes, flowsim.FromChance); names != "" {
		fmt.Fprintf(s.Out, "Assumed: an attempt takes Binomial(100, 0.05) ms: %s\n", names)
	}
	if names := tasks(ends, flowsim.FromChance); names != "" {
		fmt.Fprintf(s.Out, "Assumed: an attempt succeeds with a probability of %g: %s\n", flowsim.DefaultSuccess, names)
	}
	if names := tasks(takes, flowsim.FromHistory); names != "" {
		fmt.Fprintf(s.Out, "Attempts as in %s of the history: %s\n", render.Count(a.History.Runs(), "run"), names)
	}
	if names := tasks(output, flowsim.FromSchema); names != "" {
		fmt.Fprintf(s.Out, "%s outputs are generated from the schemas of their functions: %s\n", s.Out.Paint(render.Yellow, "Note:"), names)
	}
	if names := tasks(output, flowsim.FromNothing); names != "" {
		fmt.Fprintf(s.Out, "%s outputs are unknown, null is used instead: %s; --mocks sets them\n", s.Out.Paint(render.Yellow, "Note:"), names)
	}
}

// shownNames is how many tasks or schedules one line names.
const shownNames = 6

func someNames(names []string) string {
	text := strings.Join(names[:min(len(names), shownNames)], ", ")
	if others := len(names) - shownNames; others > 0 {
		text += " and " + render.Count(others, "other")
	}
	return text
}

// shownExpressions is how many expressions are listed.
const shownExpressions = 10

func (s *Command) showExpressions(r *flowsim.Report) {
	if len(r.Expressions) == 0 {
		return
	}
	fmt.Fprintf(s.Out, "%s in %s an expression could not be evaluated; they are excluded below\n", s.Out.Paint(render.Yellow, "Note:"), render.Count(r.NotEvaluated, "run"))
	for _, x := range r.Expressions[:min(len(r.Expressions), shownExpressions)] {
		fmt.Fprintf(s.Out, "  %s (%s): %s\n", x.At, render.Count(x.Runs, "run"), render.Printable(x.Message))
	}
	if others := len(r.Expressions) - shownExpressions; others > 0 {
		fmt.Fprintf(s.Out, "  and at %s\n", render.Count(others, "other place"))
	}
}

// maxItemLines is how many items of a fan-out get their own lines.
const maxItemLines = 12

func (s *Command) showTimeline(shown *flowsim.Shown) {
	if shown == nil {
		fmt.Fprintln(s.Out, "\nThe run to show does not end.")
		return
	}
	whole := shown.Record.FinishedAt.Sub(*shown.Record.StartedAt)
	fmt.Fprintf(s.Out, "\nRun %d: %s after %s\n", shown.Number, s.Out.Paint(render.WordColor(string(shown.Record.State)), string(shown.Record.State)), render.Short(whole))
	rows := [][]string{{"", "TASK", "STATE", "FROM", "TOOK"}}
	var bars []*flowsim.Line
	items := 0
	for i := range shown.Lines {
		l := &shown.Lines[i]
		if items++; l.Key == "" {
			items = 0
		}
		if items > maxItemLines && !l.Critical {
			continue
		}
		rows = append(rows, lineCells(l))
		bars = append(bars, l)
	}
	s.chart(rows, bars, whole)
	fmt.Fprintln(s.Out, "  * critical path  █ attempt  ▒ attempt that did not succeed  · waiting")
}

func lineCells(l *flowsim.Line) []string {
	mark, name, from, took := "", l.Task, "-", "-"
	if l.Critical {
		mark = "*"
	}
	if l.Key != "" {
		name = " [" + render.Printable(l.Key) + "]"
	}
	if l.Began {
		from, took = render.Short(l.From), render.Short(l.To-l.From)
	}
	return []string{mark, render.Fit(name, maxName), string(l.State), from, took}
}

// maxName is how many characters of a task's name are shown.
const maxName = 28

// chart writes a table with the scale after the first row and a bar after each other.
func (s *Command) chart(rows [][]string, lines []*flowsim.Line, whole time.Duration) {
	left := 0
	for _, width := range render.ColumnWidths(rows) {
		left += width + render.ColumnGap
	}
	width, end := max(s.Out.Width-left-1, 16), render.Short(whole)
	rows[0] = append(rows[0], "0"+strings.Repeat(" ", max(1, width-1-len(end)))+end)
	for i, l := range lines {
		rows[i+1] = append(rows[i+1], bar(l, whole, width))
	}
	s.Out.Table(rows, 2)
}

// bar draws the attempts of a task; more important marks overwrite others.
func bar(l *flowsim.Line, whole time.Duration, width int) string {
	cells := []rune(strings.Repeat(" ", width))
	draw := func(from, to time.Duration, with rune) {
		first, last := 0, 0
		if whole > 0 {
			first = int(float64(from) / float64(whole) * float64(width))
			last = int(float64(to)/float64(whole)*float64(width)+0.999999) - 1
		}
		first = min(first, width-1)
		for i := first; i <= min(max(last, first), width-1); i++ {
			cells[i] = with
		}
	}
	if l.Ready < l.To {
		draw(l.Ready, l.To, '·')
	}
	if l.Fan && l.Began {
		draw(l.From, l.To, '─')
	}
	for _, layer := range []struct {
		succeeded bool
		mark      rune
	}{{false, '▒'}, {true, '█'}} {
		for _, a := range l.Attempts {
			if (a.Outcome == run.OutcomeSucceeded) == layer.succeeded {
				draw(a.From, a.To, layer.mark)
			}
		}
	}
	return string(cells)
}

func (s *Command) showSpread(r *flowsim.Report) {
	parts := []string{fmt.Sprintf("%d succeeded", r.Succeeded), fmt.Sprintf("%d failed", r.Failed)}
	if r.NotEvaluated > 0 {
		parts = append(parts, fmt.Sprintf("%d not evaluated", r.NotEvaluated))
	}
	if r.Unfinished > 0 {
		parts = append(parts, fmt.Sprintf("%d do not end", r.Unfinished))
	}
	fmt.Fprintf(s.Out, "\n%s: %s\n", render.Count(r.Runs, "run"), strings.Join(parts, ", "))
	for _, f := range r.Failures[:min(len(r.Failures), shownNames)] {
		what := "the run itself"
		if f.Task != "" {
			what = "task " + f.Task
		}
		fmt.Fprintf(s.Out, "  %s because of %s (%s)\n", render.Count(f.Runs, "run"), what, render.Printable(f.Code))
	}
	d := r.Duration
	if d.N == 0 {
		return
	}
	fmt.Fprintf(s.Out, "\nDurations of %s\n  min %s  p50 %s  p90 %s  p99 %s  max %s  mean %s\n",
		render.Count(d.N, "run"), render.Short(d.Min), render.Short(d.P50), render.Short(d.P90), render.Short(d.P99), render.Short(d.Max), render.Short(d.Mean))
	s.histogram(d.Bins)
}

func (s *Command) histogram(bins []flowsim.Bin) {
	most := slices.MaxFunc(bins, func(a, b flowsim.Bin) int { return a.N - b.N }).N
	rows := make([][]string, len(bins))
	wide := max(s.Out.Width-40, 10)
	for i, b := range bins {
		length := (b.N*wide + most - 1) / most
		rows[i] = []string{"  " + render.Short(b.From), strconv.Itoa(b.N), strings.Repeat("█", length)}
	}
	s.Out.Table(rows, -1)
}

func (s *Command) showCritical(r *flowsim.Report) {
	if len(r.Critical) == 0 {
		return
	}
	fmt.Fprintln(s.Out, "\nCritical path")
	rows := [][]string{{"TASK", "RUNS", "SHARE", "TOOK"}}
	for _, c := range r.Critical {
		rows = append(rows, []string{
			render.Fit(c.Task, maxName), fmt.Sprintf("%d (%s %%)", c.Runs, share(100*float64(c.Runs)/float64(r.Duration.N))),
			share(100*c.Mean) + " %", render.Short(c.Took),
		})
	}
	s.Out.Table(rows, -1)
}
