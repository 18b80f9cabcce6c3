package main

import (
	"fmt"
	"time"

	"github.com/flowhost/flowhost/internal/schedsim"
)

// showChanges says what changes of a zone's offset do to one schedule.
func (n *nextTimes) showChanges(t *timetable, changes []schedsim.Change) {
	if len(changes) == 0 {
		fmt.Fprintf(n.out, "\n%s keeps its offset from then on.\n", t.zone)
	}
	for _, c := range changes {
		fmt.Fprintf(n.out, "\n%s\n", changeTitle(c))
		for _, e := range c.Effects {
			fmt.Fprintf(n.out, "  %s\n", e.Effect)
			which := "around the change:"
			if e.WholeDay {
				which = "on that day:"
			}
			fmt.Fprintf(n.out, "  %s%s\n", which, instants(e.Around))
		}
	}
}

func instants(times []time.Time) string {
	if len(times) == 0 {
		return " none"
	}
	text := ""
	for _, t := range times {
		text += "\n    " + instant(t)
	}
	return text
}

// changeTitle says what the clocks of a zone do.
func changeTitle(c schedsim.Change) string {
	before := c.At.In(time.FixedZone("", c.Before))
	how := "forward"
	if c.Shift() < 0 {
		how = "back"
	}
	form := "15:04"
	if c.Shift().Abs() >= 24*time.Hour {
		form = "2006-01-02 15:04"
	}
	return fmt.Sprintf("%s %s: the clock goes %s from %s to %s (%s to %s)", c.At.Format(time.DateOnly), c.Zone, how,
		before.Format(form), c.At.Format(form), schedsim.Offset(c.Before), schedsim.Offset(c.After))
}

type (
	// changeJSON is a change of a zone's offset.
	changeJSON struct {
		Timezone string       `json:"timezone"`
		At       string       `json:"at"`     // the first instant of the new offset
		Before   string       `json:"before"` // offsets, "-05:00"
		After    string       `json:"after"`
		Effects  []effectJSON `json:"effects"`
	}

	// effectJSON is what it does to a schedule.
	effectJSON struct {
		Flow      string              `json:"flow,omitempty"`
		Trigger   string              `json:"trigger,omitempty"`
		Effect    schedsim.EffectKind `json:"effect"`
		Concerned int                 `json:"concerned"` // local times that are skipped or repeated
		Text      string              `json:"text"`
		Around    []string            `json:"around"` // fires of that day, or those next to the change
	}
)

func changesJSON(changes []schedsim.Change) []changeJSON {
	out := make([]changeJSON, len(changes))
	for i, c := range changes {
		out[i] = changeJSON{Timezone: c.Zone, At: instant(c.At), Before: schedsim.Offset(c.Before), After: schedsim.Offset(c.After)}
		for _, e := range c.Effects {
			effect := effectJSON{
				Flow: e.Schedule.Flow, Trigger: e.Schedule.Trigger, Effect: e.Kind, Concerned: e.Local, Text: e.Effect.String(), Around: []string{},
			}
			for _, t := range e.Around {
				effect.Around = append(effect.Around, instant(t))
			}
			out[i].Effects = append(out[i].Effects, effect)
		}
	}
	return out
}
