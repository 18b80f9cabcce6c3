package flows

import (
	"errors"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/flowhost/flowhost/flows/internal/lang"
	"github.com/flowhost/flowhost/scheduler"
)

// scheduleDecoder is a schedule trigger while it is read.
type scheduleDecoder struct {
	*exprContext
	*lang.Content
	trigger *Trigger
	zone    *time.Location
	dst     scheduler.DST
}

func (s *exprContext) schedule(t *Trigger, c *lang.Content) {
	t.Zone = "UTC"
	tt := &scheduleDecoder{exprContext: s, Content: c, trigger: t, zone: s.zone(t, c.Arg("timezone"))}
	if word, ok := s.word(c.Arg("dst")); ok {
		tt.dst, _ = scheduler.ParseDST(word)
	}
	if form := tt.form(); form != nil {
		tt.read(form)
	}
	tt.bounds()
	tt.identify()
	tt.delays()
	tt.policies()
}

// forms are the arguments that state the times, of which a schedule has one, each with
// the arguments that only it allows.
var forms = map[string][]string{
	"cron":     {"count", "day_match", "dst"},
	"every":    {"count", "offset"},
	"at":       nil,
	"calendar": {"count", "dst"},
}

// form is the argument that states the times.
func (t *scheduleDecoder) form() *hcl.Attribute {
	var form *hcl.Attribute
	for _, name := range keys(forms) {
		a := t.Arg(name)
		switch {
		case a != nil && form != nil:
			t.diags.Add(RuleConflict, a.NameRange, form.Name+" and "+a.Name, "A schedule trigger takes exactly one of cron, every, at and calendar; declare a second trigger for the other.")
			return nil
		case a != nil:
			form = a
		}
	}
	if form == nil {
		t.diags.Add(RuleMissing, t.At, "When?", "A schedule trigger needs cron = \"…\", every = \"…\", at = \"…\" or calendar = \"…\".")
		return nil
	}
	for _, name := range []string{"count", "day_match", "dst", "offset"} {
		if a := t.Arg(name); a != nil && !slices.Contains(forms[form.Name], name) {
			t.diags.Add(RuleConflict, a.NameRange, name+" and "+form.Name, "%s has no effect with %s = …; leave it out.", name, form.Name)
		}
	}
	return form
}

// read makes the schedule of the form.
func (t *scheduleDecoder) read(form *hcl.Attribute) {
	t.trigger.Spec, _ = t.text(form)
	switch form.Name {
	case "cron":
		options := scheduler.CronOptions{Zone: t.zone, DST: t.dst, Name: t.name()}
		if word, _ := t.word(t.Arg("day_match")); word == "and" {
			options.DayMatch = scheduler.DayBoth
		}
		parsed(t, form, func(expr string) (*scheduler.Cron, error) { return scheduler.ParseCron(expr, options) })
	case "calendar":
		parsed(t, form, func(expr string) (*scheduler.Calendar, error) { return scheduler.ParseCalendar(expr, t.zone, t.dst) })
	case "at":
		if at, ok := t.instant(form); ok {
			t.trigger.Schedule = scheduler.NewAt(at)
			t.past(form, at)
		}
	case "every":
		t.every(form)
	}
}

// past warns of an instant that is over. A schedule that has fired may stay in the file.
func (t *scheduleDecoder) past(a *hcl.Attribute, at time.Time) {
	if now := t.module.options.Now; at.Before(now) && t.module.restored == nil {
		t.diags.Add(RuleSchedule, a.Expr.Range(), "In the past", "%s is over: a schedule that is deployed after its instant never fires. State a later one, or remove the trigger.", t.trigger.Spec).Severity = hcl.DiagWarning
	}
}

// name is what is hashed to spread schedules.
func (t *scheduleDecoder) name() string { return t.decoder.flow.Name + "/" + t.trigger.Name }

// parsed reads an expression and shows what is wrong with it in its place.
func parsed[S scheduler.Schedule](t *scheduleDecoder, a *hcl.Attribute, parse func(string) (S, error)) {
	expr, ok := t.text(a)
	if !ok {
		return
	}
	schedule, err := parse(expr)
	if err == nil {
		t.trigger.Schedule = schedule
		return
	}
	at, reason := a.Expr.Range(), err.Error()
	if fault := (*scheduler.ParseError)(nil); errors.As(err, &fault) {
		at, reason = inText(a.Expr, expr, fault.Offset), fault.Reason
		if fault.Field != "" {
			reason = fault.Field + ": " + reason
		}
		if fault.Hint != "" {
			reason += " (" + fault.Hint + ")"
		}
	}
	t.diags.Add(RuleSchedule, at, "Not a "+a.Name+" expression", "In %q: %s.", expr, reason)
}

func (t *scheduleDecoder) every(a *hcl.Attribute) {
	interval, ok := t.duration(a)
	if !ok {
		return
	}
	offset, stated := t.duration(t.Arg("offset"))
	schedule, err := scheduler.NewEvery(interval, offset)
	if fault := (*scheduler.IntervalError)(nil); errors.As(err, &fault) {
		at := a.Expr.Range()
		if stated && interval >= scheduler.MinInterval {
			at = t.Arg("offset").Expr.Range()
		}
		t.diags.Add(RuleSchedule, at, "Not an interval", "In %q: %s.", interval, fault.Reason)
		return
	}
	t.trigger.Schedule = schedule
}

// instant reads a time that is the same everywhere.
func (t *scheduleDecoder) instant(a *hcl.Attribute) (time.Time, bool) {
	text, ok := t.text(a)
	if !ok {
		return time.Time{}, false
	}
	at, ok := parseInstant(text)
	if !ok {
		t.diags.Add(RuleSchedule, a.Expr.Range(), "Not a time", notAnInstant, text)
	}
	return at, ok
}

const notAnInstant = "%q is not a time with its offset from UTC, such as \"2026-12-24T18:00:00+01:00\" or \"2026-12-24T17:00:00Z\", in the years 1970 to 2200."

func parseInstant(text string) (time.Time, bool) {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil || at.Year() < 1970 || at.Year() > 2200 {
		return time.Time{}, false
	}
	return at, true
}

// Expression is the expression of a schedule as it is written; an interval is
// "every 15m".
func (t *Trigger) Expression() string {
	schedule := t.Schedule
	if bounded, ok := schedule.(scheduler.Bounded); ok {
		schedule = bounded.Schedule
	}
	if _, interval := schedule.(scheduler.Every); interval {
		return "every " + t.Spec
	}
	return t.Spec
}

// bounds reads start, end and count.
func (t *scheduleDecoder) bounds() {
	bounded := scheduler.Bounded{Schedule: t.trigger.Schedule}
	bounded.Start, _ = t.instant(t.Arg("start"))
	bounded.End, _ = t.instant(t.Arg("end"))
	if n, ok := t.whole(t.Arg("count"), 1, math.MaxInt32); ok {
		t.trigger.Count = int(n)
	}
	if bounded.Schedule == nil || bounded.Start.IsZero() && bounded.End.IsZero() {
		return
	}
	if _, fires := bounded.Next(bounded.Start.Add(-1)); !fires {
		t.diags.Add(RuleSchedule, t.At, "Never fires", "The schedule has no time between its start and its end.")
	}
	t.trigger.Schedule = bounded
}

// identify notes what the nominal times come from.
func (t *scheduleDecoder) identify() {
	if t.trigger.Schedule == nil {
		return
	}
	parts := []string{t.trigger.Schedule.String(), t.trigger.Zone, "dst " + t.dst.String()}
	if dayMatch, ok := t.text(t.Arg("day_match")); ok {
		parts = append(parts, "day_match "+dayMatch)
	}
	t.trigger.Identity = strings.Join(parts, ", ")
}

// delays reads jitter and splay.
func (t *scheduleDecoder) delays() {
	jitter := t.Arg("jitter")
	if d, ok := t.duration(jitter); ok {
		t.trigger.Jitter = scheduler.Jitter{Max: d, Name: t.name()}
	}
	splay := t.Arg("splay")
	if word, ok := t.word(splay); ok {
		t.trigger.Jitter.Stable = word == "hash"
		if jitter == nil {
			t.diags.Add(RuleMissing, splay.NameRange, "Splay over what?", "splay = \"hash\" gives the trigger one delay for all its times; state with jitter = \"…\" how long that may be.")
		}
	}
}

// policies reads what becomes of times that are missed and of runs that overlap.
func (t *scheduleDecoder) policies() {
	p := &t.trigger.Policy
	if word, ok := t.word(t.Arg("catch_up")); ok {
		p.CatchUp, _ = scheduler.ParseCatchUp(word)
		t.trigger.CatchUpStated = true
	}
	p.MisfireAfter, _ = t.duration(t.Arg("misfire_after"))
	p.Window, _ = t.duration(t.Arg("catch_up_window"))
	if n, ok := t.whole(t.Arg("catch_up_max"), 1, maxCatchUp); ok {
		p.Max = int(n)
	}
	if n, ok := t.whole(t.Arg("pause_after"), 1, math.MaxInt32); ok {
		t.trigger.PauseAfter = int(n)
	}
	t.overlap()
}

// maxCatchUp bounds how many runs one moment may start.
const maxCatchUp = 10_000

func (t *scheduleDecoder) overlap() {
	t.trigger.Overlap, t.trigger.OverlapMax = OverlapSkip, DefaultOverlapMax
	if word, ok := t.word(t.Arg("overlap")); ok {
		t.trigger.Overlap = Overlap(word)
	}
	limit := t.Arg("overlap_max")
	if n, ok := t.whole(limit, 1, maxCatchUp); ok {
		t.trigger.OverlapMax = int(n)
	}
	if waits := t.trigger.Overlap == OverlapQueue || t.trigger.Overlap == OverlapNode; limit != nil && !waits {
		t.diags.Add(RuleConflict, limit.NameRange, "overlap_max and overlap", "overlap_max bounds the runs that wait with overlap = \"queue\" or \"node\"; with %q none or one does.", t.trigger.Overlap)
	}
}

func overlapValues() []string {
	return []string{
		string(OverlapSkip), string(OverlapQueueOne), string(OverlapQueue), string(OverlapCancelRunning), string(OverlapAllow), string(OverlapNode),
	}
}

func dstValues() []string {
	var words []string
	for _, d := range []scheduler.DST{
		scheduler.DSTCron, scheduler.DSTSkip, scheduler.DSTShift, scheduler.DSTFirst, scheduler.DSTLast, scheduler.DSTBoth,
	} {
		words = append(words, d.String())
	}
	return words
}

func (s *exprContext) zone(t *Trigger, a *hcl.Attribute) *time.Location {
	name, ok := s.text(a)
	if !ok {
		return time.UTC
	}
	zone, err := time.LoadLocation(name)
	if err != nil || name == "" || name == "Local" {
		s.diags.Add(RuleSchedule, a.Expr.Range(), "Unknown time zone", "%q is not a name of the IANA time zone database, such as \"Europe/Berlin\" or \"UTC\".", name)
		return time.UTC
	}
	t.Zone = name
	return zone
}

// inText is the rest of a word in a string that is written out plainly, from an
// offset; the whole expression when it is not.
func inText(e hcl.Expression, text string, offset int) hcl.Range {
	at := e.Range()
	if _, native := e.(hclsyntax.Expression); !native || at.End.Byte-at.Start.Byte != len(text)+2 || offset >= len(text) || offset < 0 {
		return at
	}
	word, _, _ := strings.Cut(text[offset:], " ")
	at.Start.Byte += 1 + offset
	at.Start.Column += 1 + offset
	at.End = at.Start
	at.End.Byte += len(word)
	at.End.Column += len(word)
	return at
}
