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

func TestQuerySizeIsBounded(t *testing.T) {
	t.Parallel()
	for limit, want := range map[int]int{-1: DefaultPage, 0: DefaultPage, 7: 7, MaxPage + 1: MaxPage} {
		if got := (&Query{Limit: limit}).Size(); got != want {
			t.Errorf("limit %d: %d, want %d", limit, got, want)
		}
	}
}
