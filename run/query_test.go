package run

import (
	"testing"
	"time"
)

func TestIDsSortByTheTimeTheyWereMade(t *testing.T) {
	t.Parallel()
	at := t0.Truncate(time.Millisecond)
	id := NewID(at)
	if least := MinID(at); id < least {
		t.Errorf("%s was made at %s and sorts before %s", id, at, least)
	}
	if next := MinID(at.Add(time.Millisecond)); id >= next {
		t.Errorf("%s was made at %s and does not sort before %s, the next millisecond's first", id, at, next)
	}
}

func TestQueryMatches(t *testing.T) {
	t.Parallel()
	at := t0.Truncate(time.Millisecond)
	s := &Summary{Run: NewID(at), Flow: "orders", State: Failed}
	cases := []struct {
		name  string
		query Query
		want  bool
	}{
		{"everything", Query{}, true},
		{"flow", Query{Flow: "orders"}, true},
		{"another flow", Query{Flow: "order"}, false},
		{"one of the states", Query{States: []State{Canceled, Failed}}, true},
		{"another state", Query{States: []State{Running}}, false},
		{"since its own millisecond", Query{Since: at}, true},
		{"since the next", Query{Since: at.Add(time.Millisecond)}, false},
		{"until its own millisecond", Query{Until: at}, false},
		{"until the next", Query{Until: at.Add(time.Millisecond)}, true},
		{"before itself", Query{Before: s.Run}, false},
		{"before a later one", Query{Before: MinID(at.Add(time.Hour))}, true},
	}
	child := *s
	child.Parent = NewID(at)
	for query, want := range map[*Query]bool{{}: false, {Children: true}: true, {Flow: "orders"}: true, {Flow: "order", Children: true}: false} {
		if got := query.Matches(&child); got != want {
			t.Errorf("a run of a sub-flow, %+v: %t, want %t", query, got, want)
		}
	}
	for _, c := range cases {
		if got := c.query.Matches(s); got != c.want {
			t.Errorf("%s: %t, want %t", c.name, got, c.want)
		}
	}
}

func TestQueryMatchesNominalTimes(t *testing.T) {
	t.Parallel()
	at := func(kind TriggerKind) *Summary {
		return &Summary{Run: NewID(t0.Add(time.Hour)), Trigger: TriggerSummary{Kind: kind, Time: t0}}
	}
	for name, c := range map[string]struct {
		query Query
		want  bool
	}{
		"all":            {Query{}, true},
		"since":          {Query{NominalSince: t0}, true},
		"since later":    {Query{NominalSince: t0.Add(1)}, false},
		"until":          {Query{NominalUntil: t0}, false},
		"until later":    {Query{NominalUntil: t0.Add(1)}, true},
		"a range":        {Query{NominalSince: t0, NominalUntil: t0.Add(1)}, true},
		"one before":     {Query{NominalSince: t0.Add(-2), NominalUntil: t0}, false},
		"when it began":  {Query{NominalSince: t0.Add(time.Hour)}, false},
		"one of all fit": {Query{NominalSince: t0, Until: t0}, false},
	} {
		for _, kind := range []TriggerKind{TriggerSchedule, TriggerBackfill} {
			if got := c.query.Matches(at(kind)); got != c.want {
				t.Errorf("%s, %s: %t, want %t", name, kind, got, c.want)
			}
		}
		if got := c.query.Matches(at(TriggerMessage)); got != (name == "all") {
			t.Errorf("%s, a message: %t", name, got)
		}
	}
}

func TestQuerySizeIsBounded(t *testing.T) {
	t.Parallel()
	for limit, want := range map[int]int{-1: DefaultPage, 0: DefaultPage, 7: 7, MaxPage + 1: MaxPage} {
		if got := (&Query{Limit: limit}).Size(); got != want {
			t.Errorf("limit %d: %d, want %d", limit, got, want)
		}
	}
}
