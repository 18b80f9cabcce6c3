package dag

import (
	"context"
	"errors"
	"strings"
	"testing"
)

func TestPlan(t *testing.T) {
	t.Parallel()
	var s Spec[int]
	s.Add("sum", 0, "one", "two") // before what it depends on
	s.Add("one", 1)
	s.Add("two", 2)
	p, err := s.Build()
	if err != nil {
		t.Fatal(err)
	}
	s.Add("three", 3)
	if p.Len() != 3 || names(p.Graph, p.Order()) != "one two sum" || p.Node(2) != (Node[int]{Index: 2, ID: "two", Value: 2}) {
		t.Errorf("%s, %+v", names(p.Graph, p.Order()), p.Node(2))
	}
	var walked []string
	r, err := p.Walk(t.Context(), func(_ context.Context, n Node[int]) error {
		walked = append(walked, n.ID)
		if n != p.Node(n.Index) {
			t.Errorf("%+v", n)
		}
		return nil
	}, WalkOptions{Workers: 1})
	if err != nil || r.Count(Succeeded) != 3 || strings.Join(walked, " ") != "one two sum" {
		t.Errorf("%v, %v", walked, err)
	}
}

func TestPlanOfNothing(t *testing.T) {
	t.Parallel()
	p, err := new(Spec[string]).Build()
	if err != nil || p.Len() != 0 {
		t.Fatal(err)
	}
	if _, err := p.Walk(t.Context(), func(context.Context, Node[string]) error { return errBroken }, WalkOptions{}); err != nil {
		t.Error(err)
	}
}

// Build says all that is wrong at once.
func TestPlanRefuses(t *testing.T) {
	t.Parallel()
	var s Spec[struct{}]
	s.Add("a", struct{}{}, "b", "b", "x")
	s.Add("b", struct{}{}, "a")
	s.Add("b", struct{}{}, "y", "y")
	p, err := s.Build()
	if p != nil {
		t.Error("a plan in spite of errors")
	}
	want := strings.Join([]string{
		`node "b" exists already: ids must be unique in a graph`,
		`edge b → a exists already: name each dependency once`,
		`edge x → a: there is no node "x"`,
		`edge y → b: there is no node "y"`,
		`edge y → b: there is no node "y"`,
		`dependency cycle: a → b → a`,
	}, "\n")
	if err == nil || err.Error() != want {
		t.Errorf("got:\n%v\nwant:\n%s", err, want)
	}
	var duplicate *DuplicateEdgeError
	if !errors.As(err, &duplicate) || duplicate.From != "b" || duplicate.To != "a" {
		t.Errorf("%+v", duplicate)
	}
	if !errors.As(err, new(*DuplicateError)) || !errors.As(err, new(*UnknownError)) || !errors.As(err, new(*CycleError)) {
		t.Error("an error has lost its type")
	}
}

// A dependency that two nodes of one id name is named once by each.
func TestPlanEdgesToDifferentNodes(t *testing.T) {
	t.Parallel()
	var s Spec[struct{}]
	s.Add("a", struct{}{})
	s.Add("b", struct{}{}, "a")
	s.Add("c", struct{}{}, "a")
	if _, err := s.Build(); err != nil {
		t.Error(err)
	}
}
