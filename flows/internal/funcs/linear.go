package funcs

import (
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"

	"github.com/flowhost/flowhost/flows/internal/budget"
	"github.com/flowhost/flowhost/flows/internal/ctyjson"
)

// This file has the functions of the standard library whose own way takes the square
// of the size of what they are given.

// distinctFunc compares only elements of the same checksum.
var distinctFunc = function.New(&function.Spec{
	Description: "Leaves out the elements of a list that were there before.",
	Params:      []function.Parameter{{Name: "list", Type: cty.List(cty.DynamicPseudoType)}},
	Type:        func(args []cty.Value) (cty.Type, error) { return args[0].Type(), nil },
	Impl: func(args []cty.Value, t cty.Type) (cty.Value, error) {
		if !args[0].IsWhollyKnown() {
			return cty.UnknownVal(t), nil
		}
		var out []cty.Value
		seen := map[int][]cty.Value{}
		for _, item := range args[0].AsValueSlice() {
			sum := item.Hash()
			if !holds(seen[sum], item) {
				seen[sum] = append(seen[sum], item)
				out = append(out, item)
			}
		}
		if len(out) == 0 {
			return cty.ListValEmpty(t.ElementType()), nil
		}
		return cty.ListVal(out), nil
	},
})

func holds(all []cty.Value, v cty.Value) bool {
	for _, one := range all {
		if one.Equals(v).True() {
			return true
		}
	}
	return false
}

var jsonDecodeFunc = function.New(&function.Spec{
	Description: "Reads JSON.",
	Params:      []function.Parameter{{Name: "text", Type: cty.String}},
	Type: func(args []cty.Value) (cty.Type, error) {
		if !args[0].IsKnown() {
			return cty.DynamicPseudoType, nil
		}
		v, err := ctyjson.Decode([]byte(args[0].AsString()), budget.New())
		if err != nil {
			return cty.NilType, function.NewArgError(0, err)
		}
		return v.Type(), nil
	},
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		return ctyjson.Decode([]byte(args[0].AsString()), budget.New())
	},
})

// jsonEncodeFunc writes what a task would be given.
var jsonEncodeFunc = function.New(&function.Spec{
	Description: "Writes a value as JSON.",
	Params:      []function.Parameter{{Name: "value", Type: cty.DynamicPseudoType, AllowNull: true, AllowDynamicType: true}},
	Type:        function.StaticReturnType(cty.String),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		if !args[0].IsWhollyKnown() {
			return cty.UnknownVal(cty.String), nil
		}
		encoded, err := ctyjson.Encode(args[0], budget.New())
		if err != nil {
			return cty.NilVal, function.NewArgError(0, err)
		}
		return cty.StringVal(string(encoded)), nil
	},
})
