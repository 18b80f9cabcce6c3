package plan

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/flowhost/flowhost/cmd/flowhost/internal/render"
)

// marks are how actions are shown, as terraform shows them.
var marks = map[action]struct{ sign, color string }{
	actionAdd: {"+", render.Green}, actionChange: {"~", render.Yellow}, actionRemove: {"-", render.Red},
}

// Show writes a plan for people; errout gets why the host did not load its own files.
func (d *Difference) Show(out, errout *render.Terminal, flows int) {
	p := planText{out}
	if d.Fault != nil {
		errout.Say("%s the host failed to load its own files at %s:", errout.Paint(render.Yellow, "Note:"), render.LocalTime(d.Fault.At))
		for _, problem := range d.Fault.Problems {
			errout.Say("  %s", render.Printable(problem))
		}
	}
	if len(d.Changes) == 0 {
		fmt.Fprintf(p, "No changes: the host has deployed the same %s since %s\n", render.Count(flows, "flow"), render.LocalTime(d.Since))
		return
	}
	for _, c := range d.Changes {
		p.showFlow(c)
	}
	fmt.Fprintf(p, "\n%s\n", totals(d))
}

// planText writes a plan.
type planText struct{ *render.Terminal }

// line writes one change, with the sign of its action.
func (p planText) line(indent string, a action, format string, args ...any) {
	m := marks[a]
	fmt.Fprintf(p, "%s%s %s\n", indent, p.Paint(m.color, m.sign), fmt.Sprintf(format, args...))
}

func (p planText) showFlow(c flowChange) {
	p.line("", c.Action, "flow %s", c.Flow)
	for _, b := range c.Blocks {
		p.line("    ", b.Action, "%s", render.Printable(b.Block))
	}
	for _, m := range c.Modules {
		a, text := actionChange, digestOrNone(m.Before)+" -> "+digestOrNone(m.After)
		switch {
		case m.Before == "":
			a, text = actionAdd, digestOrNone(m.After)
		case m.After == "":
			a, text = actionRemove, digestOrNone(m.Before)
		}
		p.line("    ", a, "module %s  %s", render.Printable(m.Source), text)
	}
	for _, x := range c.Connections {
		switch {
		case x.Before == "":
			p.line("    ", actionAdd, "connection %s  %s", x.Connection, render.Printable(x.After))
		case x.After == "":
			p.line("    ", actionRemove, "connection %s  %s", x.Connection, render.Printable(x.Before))
		default:
			p.line("    ", actionChange, "connection %s  %s -> %s", x.Connection, render.Printable(x.Before), render.Printable(x.After))
		}
	}
	for _, s := range c.Schedules {
		p.line("    ", s.Action, "schedule %s  %s", s.Trigger, fires(s))
	}
	for _, g := range c.Grants {
		text := fmt.Sprintf("task %s may %s %s", g.Task, g.Right.Right, render.Printable(g.To))
		if g.Grows {
			fmt.Fprintf(p, "    %s\n", p.Paint(render.Red, "! grant grows: "+text))
			continue
		}
		p.line("    ", actionRemove, "%s no longer", text)
	}
	if c.Action == actionRemove {
		fmt.Fprintln(p, "    open runs keep their definition")
	}
}

// shownDigest is how much of a digest is shown.
const shownDigest = 12

func digestOrNone(digest string) string {
	digest = strings.TrimPrefix(digest, "sha256:")
	return cmp.Or(digest[:min(shownDigest, len(digest))], "none")
}

// fires is when a schedule fires next.
func fires(s scheduleChange) string {
	text := "next " + timeOrNever(s.After)
	switch {
	case s.Action == actionRemove:
		text = "no longer fires, next was " + timeOrNever(s.Before)
	case s.Paused:
		text += ", once it is resumed"
	case s.Action == actionChange:
		text += ", was " + timeOrNever(s.Before)
	}
	return text
}

func timeOrNever(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return render.LocalTime(t)
}

// totals are the totals of a plan.
func totals(d *Difference) string {
	number, growing := map[action]int{}, 0
	for _, c := range d.Changes {
		number[c.Action]++
		if c.grows() {
			growing++
		}
	}
	text := fmt.Sprintf("%s to add, %d to change, %d to remove", render.Count(number[actionAdd], "flow"), number[actionChange], number[actionRemove])
	if growing > 0 {
		text += "; grants grow in " + render.Count(growing, "flow")
	}
	return text
}
