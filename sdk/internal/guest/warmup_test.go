package guest

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
)

type tree struct {
	Name     string           `json:"name"`
	Children []*tree          `json:"children,omitempty"`
	Index    map[string]*leaf `json:"index,omitempty"`
	hidden   []int
}

type leaf struct {
	Weights [2]float64 `json:"weights"`
	Any     any        `json:"any"`
}

func TestFillReachesTypesWithinTypes(t *testing.T) {
	t.Parallel()
	var v tree
	fill(reflect.ValueOf(&v).Elem(), 5, 3)
	leaves := func(depth int) map[string]*leaf {
		all := map[string]*leaf{}
		for i := range 3 {
			all[fmt.Sprint(100001+i)] = nil
			if depth > 1 {
				all[fmt.Sprint(100001+i)] = &leaf{Weights: [2]float64{}}
			}
		}
		return all
	}
	child := &tree{Name: "100001", Children: []*tree{nil}, Index: map[string]*leaf{"100001": nil}}
	want := tree{
		Name:     "100001",
		Children: []*tree{child, child, child},
		hidden:   nil, // nobody outside of the package could fill it
		Index:    leaves(2),
	}
	if diff := cmp.Diff(want, v, cmp.AllowUnexported(tree{})); diff != "" {
		t.Error(diff)
	}
}

// awkward is a type that does not take what it gives.
type awkward struct{}

func (awkward) MarshalJSON() ([]byte, error)  { return []byte(`"x"`), nil }
func (*awkward) UnmarshalJSON(b []byte) error { return errors.New("never") }

func TestWarmUp(t *testing.T) {
	t.Parallel()
	var p Plugin
	AddTypes[tree, map[string]tree](&p)
	AddTypes[awkward, func()](&p) // a function is no JSON
	AddTypes[json.RawMessage, any](&p)
	var order []string
	p.WarmUp(func() error { order = append(order, "first"); return nil })
	p.WarmUp(func() error { order = append(order, "second"); return nil })
	if status := p.RunWarmUp(&scripted{}); status != statusOK {
		t.Errorf("status %d", status)
	}
	if diff := cmp.Diff([]string{"first", "second"}, order); diff != "" {
		t.Error(diff)
	}
	p.WarmUp(func() error { return errors.New("no table") })
	h := &scripted{}
	if status := p.RunWarmUp(h); status != statusFailed || h.fail == "" {
		t.Errorf("a warm-up that fails: status %d, told %q", status, h.fail)
	}
}

// TestRehearsal has the functions of a call made up, and none of an author's.
func TestRehearsal(t *testing.T) {
	t.Parallel()
	var p Plugin
	p.Add("counts", Typed(func(*Call, tree) (tree, error) {
		t.Error("the function has run")
		return tree{}, nil
	}))
	AddTypes[tree, tree](&p)
	p.rehearse()
	if id := newCall(rehearsal{}).Call(); id.Flow == "" || id.Scheduled.IsZero() {
		t.Errorf("identity %+v", id)
	}
}
