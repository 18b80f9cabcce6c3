package timetable

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/flowhost/flowhost/cmd/flowhost/internal/cli"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/render"
	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/internal/schedsim"
	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/scheduler"
)

// Timetable is the schedule of an expression or of a trigger.
type Timetable struct {
	schedule scheduler.Schedule
	Zone     *time.Location
	jitter   scheduler.Jitter
	ref      run.ScheduleRef
	Trigger  *flows.Trigger // nil for an expression
}

// IsTriggerName reports whether an argument has the form FLOW/TRIGGER, which no
// expression has.
func IsTriggerName(what string) bool { return triggerName.MatchString(what) }

var triggerName = regexp.MustCompile(`^[A-Za-z_][\w-]*(/[\w-]+)+$`)

// bareWord may be meant as a trigger.
var bareWord = regexp.MustCompile(`^[A-Za-z_][\w-]*$`)

// FindSchedule finds a trigger by its name behind that of its flow, which may have
// slashes, too.
func FindSchedule(cmd *cobra.Command, set *flows.Set, what string) (*flows.Flow, *flows.Trigger, error) {
	cut := strings.LastIndex(what, "/")
	flow, trigger := what[:cut], what[cut+1:]
	f := set.Flow(flow)
	if f == nil {
		var names []string
		for _, f := range set.Flows {
			for _, name := range schedulesIn(f) {
				names = append(names, f.Name+"/"+name)
			}
		}
		return nil, nil, cli.Usage(cmd, "unknown flow %q in trigger %q%s", flow, what, cli.Suggest(what, names))
	}
	t := f.Trigger(trigger)
	switch {
	case t == nil:
		return nil, nil, cli.Usage(cmd, "flow %q has no trigger %q%s", flow, trigger, cli.Suggest(trigger, schedulesIn(f)))
	case t.Kind != run.TriggerSchedule:
		return nil, nil, cli.Usage(cmd, "trigger %q of flow %q is not a schedule", t.Name, f.Name)
	}
	return f, t, nil
}

// schedulesIn are the names of a flow's triggers that are schedules.
func schedulesIn(f *flows.Flow) []string {
	var names []string
	for _, t := range f.Triggers {
		if t.Kind == run.TriggerSchedule {
			names = append(names, t.Name)
		}
	}
	return names
}

// Options are the flags for an expression.
type Options struct{ Zone, DST, Name string }

// OfTrigger returns the schedule of a trigger.
func OfTrigger(f *flows.Flow, t *flows.Trigger) (*Timetable, error) {
	zone, err := time.LoadLocation(t.Zone)
	if err != nil {
		return nil, err // it was there when the flow was loaded
	}
	return &Timetable{
		schedule: t.Schedule, Zone: zone, jitter: t.Jitter, Trigger: t, ref: run.ScheduleRef{Flow: f.Name, Trigger: t.Name},
	}, nil
}

// OfExpression returns the schedule of an expression.
func OfExpression(cmd *cobra.Command, expr string, o Options) (*Timetable, error) {
	zone, err := ZoneNamed(cmd, o.Zone)
	if err != nil {
		return nil, err
	}
	dst := scheduler.DSTCron
	if o.DST != "" {
		var ok bool
		if dst, ok = scheduler.ParseDST(o.DST); !ok {
			return nil, cli.Usage(cmd, "--dst %q is not a mode%s", o.DST, cli.Suggest(o.DST, dstModes()))
		}
	}
	t := &Timetable{Zone: zone}
	switch form := formOf(expr); {
	case o.DST != "" && (form == formInterval || form == formInstant):
		return nil, cli.Usage(cmd, "--dst does not apply to %q: the expression does not depend on a time zone", expr)
	case form == formInterval:
		t.schedule, err = interval(expr)
	case form == formInstant:
		var at time.Time
		at, err = time.Parse(time.RFC3339, expr)
		t.schedule = scheduler.NewAt(at)
	case form == formCron:
		t.schedule, err = scheduler.ParseCron(expr, scheduler.CronOptions{Zone: zone, DST: dst, Name: o.Name})
	default:
		t.schedule, err = scheduler.ParseCalendar(expr, zone, dst)
	}
	if err != nil {
		return nil, expressionError(expr, err)
	}
	return t, nil
}

// form is the kind of an expression, or the most likely kind of an invalid one.
type form uint8

const (
	formCalendar form = iota
	formCron
	formInterval
	formInstant
)

// A cron expression has five fields or more, or begins with @; a calendar expression
// has at most three. Shorter ones are recognized by their letters and signs.
var (
	likeInstant  = regexp.MustCompile(`^\d{4}-\d\d-\d\d[Tt]`)
	likeInterval = regexp.MustCompile(`^(every\s+\S+|-?[\d.]+[a-zµμ][\da-zµμ.]*)(\s+offset\s+\S+)?$`)
	likeCalendar = regexp.MustCompile(`[:~]|\.\.|[\d*]-[\d*]|^[A-Za-z]{3,}`)
)

func formOf(expr string) form {
	words := len(strings.Fields(expr))
	switch {
	case likeInstant.MatchString(expr):
		return formInstant
	case likeInterval.MatchString(expr):
		return formInterval
	case strings.HasPrefix(expr, "@"), words > 3, !likeCalendar.MatchString(expr):
		return formCron
	}
	return formCalendar
}

// interval reads "15m", "every 15m" and "every 1h offset 5m".
func interval(expr string) (scheduler.Schedule, error) {
	words := strings.Fields(expr)
	if words[0] == "every" {
		words = words[1:]
	}
	every, err := time.ParseDuration(words[0])
	if err != nil {
		return nil, notInterval(words[0])
	}
	var offset time.Duration
	if len(words) == 3 {
		if offset, err = time.ParseDuration(words[2]); err != nil {
			return nil, notInterval(words[2])
		}
	}
	return scheduler.NewEvery(every, offset)
}

func notInterval(word string) error {
	return fmt.Errorf("%q is not a duration: write it with units, such as 250ms, 30s, 15m or 1h30m", word)
}

// expressionError shows a problem of an expression under its place.
func expressionError(expr string, err error) error {
	var fault *scheduler.ParseError
	var parse *time.ParseError
	switch {
	case errors.As(err, &parse):
		return cli.Exitf(cli.ExitInvalid, "%q is not an instant: write it with its offset from UTC, such as 2026-12-24T18:00:00+01:00 or 2026-12-24T17:00:00Z", expr)
	case !errors.As(err, &fault):
		return cli.WithCode(cli.ExitInvalid, err)
	}
	var text strings.Builder
	text.WriteString(fault.Notation + ": ")
	if fault.Field != "" {
		text.WriteString(fault.Field + ": ")
	}
	text.WriteString(render.Printable(fault.Reason))
	if expr != "" && len(expr) <= maxShownExpr {
		before := render.Printable(expr[:min(fault.Offset, len(expr))])
		fmt.Fprintf(&text, "\n  %s\n  %s^", render.Printable(expr), strings.Repeat(" ", utf8.RuneCountInString(before)))
	}
	if hint, _, _ := strings.Cut(fault.Hint, "; in Go, "); hint != "" {
		text.WriteString("\n" + render.Printable(hint))
	}
	if bareWord.MatchString(expr) {
		text.WriteString("\nto name a trigger, write FLOW/TRIGGER")
	}
	return cli.Exitf(cli.ExitInvalid, "%s", text.String())
}

// maxShownExpr is the length up to which an error shows the expression.
const maxShownExpr = 120

// dstModes are the values of --dst.
func dstModes() []string {
	var modes []string
	for d := scheduler.DSTCron; d <= scheduler.DSTBoth; d++ {
		modes = append(modes, d.String())
	}
	return modes
}

// FireTime is a nominal time, and when it is due.
type FireTime struct {
	nominal, due time.Time
}

// Next returns up to number times after an instant.
func (t *Timetable) Next(after time.Time, number int) []FireTime {
	var times []FireTime
	for at, ok := t.schedule.Next(after); ok && len(times) < number; at, ok = t.schedule.Next(at) {
		times = append(times, FireTime{at.In(t.Zone), t.jitter.Due(t.schedule, at).In(t.Zone)})
	}
	return times
}

// Changes are the next changes of the zone's offset, with their effect.
func (t *Timetable) Changes(after time.Time, number int) []schedsim.Change {
	var all []schedsim.Change
	for c, ok := scheduler.NextTransition(t.Zone, after); ok && len(all) < number; c, ok = scheduler.NextTransition(t.Zone, c.At) {
		all = append(all, schedsim.Change{
			Zone: t.Zone.String(), Transition: c,
			Effects: []schedsim.ScheduleEffect{{Schedule: t.ref, Effect: schedsim.EffectOf(t.schedule, c)}},
		})
	}
	return all
}

// Listing is what schedule next --json prints.
type Listing struct {
	Schedule string       `json:"schedule"` // in canonical form
	Flow     string       `json:"flow,omitempty"`
	Trigger  string       `json:"trigger,omitempty"`
	Timezone string       `json:"timezone"`
	Times    []timeJSON   `json:"times"`
	Changes  []ChangeJSON `json:"changes,omitempty"`
}

type timeJSON struct {
	Nominal string `json:"nominal"`
	Due     string `json:"due"`
}

// JSON returns times and offset changes in JSON form.
func (t *Timetable) JSON(times []FireTime, changes []schedsim.Change) Listing {
	out := Listing{
		Schedule: t.schedule.String(), Flow: t.ref.Flow, Trigger: t.ref.Trigger, Timezone: t.Zone.String(),
		Times: make([]timeJSON, len(times)), Changes: ChangesJSON(changes),
	}
	for i, f := range times {
		out.Times[i] = timeJSON{render.Instant(f.nominal), render.Instant(f.due)}
	}
	return out
}

func (f FireTime) String() string {
	if f.due.Equal(f.nominal) {
		return render.Instant(f.nominal)
	}
	return render.Instant(f.nominal) + "  due " + render.Instant(f.due)
}
