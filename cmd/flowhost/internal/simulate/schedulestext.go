package simulate

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/flowhost/flowhost/cmd/flowhost/internal/render"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/timetable"
	"github.com/flowhost/flowhost/internal/schedsim"
)

// showReport writes a simulation for people: the assumptions, then the results.
func (s *Command) showReport(a assumptions, r *schedsim.Report) {
	fmt.Fprintf(s.Out, "From %s to %s, with %s (%s)\n", render.Instant(a.From), render.Instant(a.To), render.Count(a.Workers, "worker"), a.workersFrom)
	for _, o := range a.Outages {
		fmt.Fprintf(s.Out, "The host is down from %s to %s\n", render.Instant(o.From), render.Instant(o.To))
	}
	fmt.Fprintf(s.Out, "Assumed: %s; all tasks succeed; only schedules start runs\n", takesWords(a))
	for _, note := range r.Notes {
		fmt.Fprintf(s.Out, "%s %s\n", s.Out.Paint(render.Yellow, "Note:"), note)
	}
	s.showSchedules(r)
	s.showHerds(r)
	s.showPool(a, r)
	s.showEffects(r)
}

func takesWords(a assumptions) string {
	text := "a run takes " + span(a.Takes)
	for _, flow := range slices.Sorted(maps.Keys(a.FlowTakes)) {
		text += fmt.Sprintf(", one of %s %s", flow, span(a.FlowTakes[flow]))
	}
	return text + ", shared by the tasks on its longest path"
}

func (s *Command) showSchedules(r *schedsim.Report) {
	fmt.Fprintln(s.Out)
	rows := [][]string{{"SCHEDULE", "TIMES", "RUNS", "SKIPPED", "WAITED", "LONGEST", "CANCELED", "CAUGHT UP", "MISSED", "OPEN"}}
	for _, sc := range r.Schedules {
		rows = append(rows, []string{
			sc.Schedule.String(), strconv.Itoa(sc.Times + sc.Missed), strconv.Itoa(sc.Runs),
			some(sc.Skipped), some(sc.Waited), spanOrNone(sc.MaxWait), some(sc.Canceled), some(sc.CaughtUp), some(sc.Missed), some(sc.Open),
		})
	}
	s.Out.Table(rows, -1)
	for _, sc := range r.Schedules {
		if sc.Rejected > 0 {
			fmt.Fprintf(s.Out, "%s: %s start no run: %s\n", sc.Schedule, render.Count(sc.Rejected, "time"), render.Printable(sc.Reason))
		}
	}
}

func (s *Command) showHerds(r *schedsim.Report) {
	if len(r.Herds) == 0 {
		return
	}
	fmt.Fprintln(s.Out, "\nBusiest minutes")
	for _, h := range r.Herds {
		line := fmt.Sprintf("  %s  %s", h.Minute.Format("2006-01-02 15:04Z"), render.Count(h.Runs, "run"))
		if h.Minutes > 1 {
			line += fmt.Sprintf(", and in %d more like it", h.Minutes-1)
		}
		if h.Late > 0 {
			line += fmt.Sprintf(", %d of them late after an outage", h.Late)
		}
		fmt.Fprintf(s.Out, "%s\n    %s\n", line, shares(h.Schedules))
		if h.Jitter > 0 {
			fmt.Fprintf(s.Out, "    jitter = %q in the schedules without jitter would spread them\n", span(h.Jitter))
		}
	}
}

func shares(all []schedsim.HerdShare) string {
	var names []string
	for _, share := range all {
		name := share.Schedule.String()
		if share.Runs > 1 {
			name += fmt.Sprintf(" (%d)", share.Runs)
		}
		names = append(names, name)
	}
	return someNames(names)
}

func (s *Command) showPool(a assumptions, r *schedsim.Report) {
	p, lasts := r.Pool, a.To.Sub(a.From)
	fmt.Fprintf(s.Out, "\nWorkers\n  at most %s at once, %s on average; at most %s open\n",
		render.Count(p.MostRunning, "task"), share(p.Used/lasts.Seconds()), render.Count(r.MostOpen, "run"))
	if p.MostWaiting == 0 {
		fmt.Fprintln(s.Out, "  no task waits for a worker")
		return
	}
	fmt.Fprintf(s.Out, "  all busy for %s, %s %% of the time\n", span(p.AllBusy), share(100*p.AllBusy.Seconds()/lasts.Seconds()))
	fmt.Fprintf(s.Out, "  longest wait of a task: %s, from %s, of %s\n", span(p.LongestWait), render.Instant(p.LongestWaitAt.UTC()), p.LongestWaitOf)
	fmt.Fprintf(s.Out, "  most waiting tasks: %d, at %s\n", p.MostWaiting, render.Instant(p.MostWaitingAt.UTC()))
}

// showEffects writes the effects of offset changes, without each schedule that they
// do not affect.
func (s *Command) showEffects(r *schedsim.Report) {
	for _, c := range r.Changes {
		fmt.Fprintf(s.Out, "\n%s\n", timetable.ChangeTitle(c))
		others := 0
		for _, e := range c.Effects {
			if e.Kind == schedsim.EffectNone || e.Kind == schedsim.EffectElapsed {
				others++
				continue
			}
			fmt.Fprintf(s.Out, "  %s: %s\n", e.Schedule, e.Effect)
		}
		if others > 0 {
			fmt.Fprintf(s.Out, "  %s not affected\n", render.Count(others, "schedule"))
		}
	}
}

// some is a number, or a dash for 0.
func some(n int) string {
	if n == 0 {
		return "-"
	}
	return strconv.Itoa(n)
}

func spanOrNone(d time.Duration) string {
	if d == 0 {
		return "-"
	}
	return span(d)
}

// span is a duration without zeros at its end, "1h30m", to the tenth of a second.
func span(d time.Duration) string {
	if d >= time.Second {
		d = d.Round(100 * time.Millisecond)
	}
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = text[:len(text)-2]
	}
	if strings.HasSuffix(text, "h0m") {
		text = text[:len(text)-2]
	}
	return text
}

// share is a number with two significant digits below 10, and as an integer above.
func share(f float64) string {
	switch {
	case f >= 10:
		return strconv.FormatFloat(f, 'f', 0, 64)
	case f >= 0.995:
		return strconv.FormatFloat(f, 'f', 1, 64)
	}
	return strconv.FormatFloat(f, 'f', 2, 64)
}
