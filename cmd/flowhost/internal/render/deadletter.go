package render

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/flowhost/flowhost/bus/api"
)

// DeadLetterColumns are the columns of DeadLetterRow.
func DeadLetterColumns() *Columns {
	return &Columns{Names: []string{"NUMBER", "AT", "FLOW", "TRIGGER", "SIZE", "CODE", "REASON"}, States: -1, Narrow: []int{4, 3, 5}}
}

// DeadLetterRow is a row of a list of dead letters.
func DeadLetterRow(l api.DeadLetter) []string {
	return []string{
		strconv.FormatUint(l.Sequence, 10), LocalTime(l.At), Printable(l.Flow), Printable(l.Trigger), Size(int64(l.Size)), Printable(l.Code), Printable(Fit(l.Reason, maxReason)),
	}
}

const (
	maxReason  = 120     // characters of a reason in a list
	maxPayload = 4 << 10 // bytes of a body that are shown
)

// DescribeDeadLetter writes a dead letter for people.
func (t *Terminal) DescribeDeadLetter(l *api.DeadLetter) {
	t.fact("number", strconv.FormatUint(l.Sequence, 10))
	t.fact("flow", Printable(l.Flow))
	t.fact("trigger", Printable(l.Trigger))
	t.fact("for wait", Printable(l.ForWait))
	t.fact("subject", Printable(l.Subject))
	t.fact("at", LocalTime(l.At))
	t.fact("code", Printable(l.Code))
	t.fact("reason", t.Paint(Red, Printable(l.Reason)))
	for _, name := range slices.Sorted(maps.Keys(l.Headers)) {
		for _, value := range l.Headers[name] {
			t.fact("header", Printable(name+": "+value))
		}
	}
	t.fact("body", deadBody(l))
}

// deadBody is the beginning of a body, or why there is none.
func deadBody(l *api.DeadLetter) string {
	switch {
	case l.NoBody:
		return "not kept: it has " + Size(int64(l.Size))
	case l.Size == 0:
		return "empty"
	case l.Body == nil:
		return Size(int64(l.Size)) + " that are not text; --json prints them in base64"
	case len(*l.Body) > maxPayload:
		return Printable(strings.ToValidUTF8((*l.Body)[:maxPayload], "")) + "… (" + Size(int64(l.Size)) + "; --json prints all)"
	}
	return Printable(*l.Body)
}
