package budget

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// randomValue is what data and expressions may hold.
func randomValue(r *rand.Rand, depth int) cty.Value {
	parts := func() []cty.Value {
		out := make([]cty.Value, r.IntN(4))
		same := randomValue(r, depth-1)
		for i := range out {
			if out[i] = same; r.IntN(3) == 0 {
				out[i] = randomValue(r, depth-1)
			}
		}
		return out
	}
	kind := r.IntN(12)
	if depth == 0 {
		kind %= 7
	}
	switch kind {
	case 0:
		return cty.StringVal([]string{"a", "true", "12", "1.50"}[r.IntN(4)])
	case 1:
		return cty.NumberIntVal(r.Int64N(3))
	case 2:
		return cty.NumberFloatVal(float64(r.IntN(9)) / 8)
	case 3:
		return cty.BoolVal(r.IntN(2) == 0)
	case 4:
		return cty.NullVal(cty.DynamicPseudoType)
	case 5:
		return cty.NullVal(randomType(r, 1).WithoutOptionalAttributesDeep())
	case 6:
		return cty.UnknownVal(cty.String)
	case 7, 8:
		return cty.TupleVal(parts())
	case 9:
		items := parts()
		if len(items) == 0 {
			return cty.ListValEmpty(cty.Number)
		}
		for i := range items {
			items[i] = items[0]
		}
		return []func([]cty.Value) cty.Value{cty.ListVal, cty.SetVal}[r.IntN(2)](items)
	case 10:
		items := map[string]cty.Value{}
		item := randomValue(r, depth-1)
		for i := range 1 + r.IntN(3) {
			items[fmt.Sprint("k", i)] = item
		}
		return cty.MapVal(items)
	}
	attributes := map[string]cty.Value{}
	for _, part := range parts() {
		attributes[string(rune('a'+r.IntN(3)))] = part
	}
	return cty.ObjectVal(attributes)
}

// randomType is what a type argument may say.
func randomType(r *rand.Rand, depth int) cty.Type {
	kind := r.IntN(9)
	if depth == 0 {
		kind %= 4
	}
	switch kind {
	case 0:
		return cty.String
	case 1:
		return cty.Number
	case 2:
		return cty.Bool
	case 3:
		return cty.DynamicPseudoType
	case 4:
		return cty.List(randomType(r, depth-1))
	case 5:
		return cty.Set(randomType(r, depth-1))
	case 6:
		return cty.Map(randomType(r, depth-1))
	case 7:
		return cty.Tuple([]cty.Type{randomType(r, depth-1), randomType(r, depth-1)})
	}
	attributes := map[string]cty.Type{}
	var optional []string
	for _, name := range []string{"a", "b", "c"} {
		if r.IntN(2) == 0 {
			attributes[name] = randomType(r, depth-1)
			if r.IntN(2) == 0 {
				optional = append(optional, name)
			}
		}
	}
	return cty.ObjectWithOptionalAttrs(attributes, optional)
}

// TestLinearConvertsAsCtyDoes compares the two ways on random values and types: what
// is converted in linear time is what cty converts to.
func TestLinearConvertsAsCtyDoes(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(14, 17))
	linear := 0
	for range 200_000 {
		v, want := randomValue(r, 3), randomType(r, 3)
		m := New()
		got, ok := m.linear(v, want)
		if !ok || m.Spent() {
			continue
		}
		linear++
		expected, err := convert.Convert(v, want)
		if err != nil || !got.RawEquals(expected) {
			t.Fatalf("%#v to %#v:\n%#v, not\n%#v, %v", v, want, got, expected, err)
		}
	}
	t.Logf("%d conversions", linear)
	if linear < 20_000 {
		t.Errorf("%d conversions in linear time are too few", linear)
	}
}
