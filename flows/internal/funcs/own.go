package funcs

import (
	"errors"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"

	"github.com/flowhost/flowhost/flows/internal/budget"
)

// ownFunctions are those that no library has, or that must be different here.
func ownFunctions() map[string]function.Function {
	return map[string]function.Function{
		"coalesce":     coalesceFunc,
		"length":       lengthFunc,
		"sum":          sumFunc,
		"one":          oneFunc,
		"index":        indexFunc,
		"alltrue":      truthFunc(true),
		"anytrue":      truthFunc(false),
		"startswith":   prefixFunc,
		"endswith":     suffixFunc,
		"strcontains":  containsFunc,
		"replace":      replaceFunc,
		"timeadd":      timeaddFunc,
		"timecmp":      timecmpFunc,
		"urldecode":    urldecodeFunc,
		"sensitive":    sensitiveFunc,
		"nonsensitive": nonsensitiveFunc,
	}
}

// anything is a parameter that takes every value.
func anything(name string) function.Parameter {
	return function.Parameter{
		Name: name, Type: cty.DynamicPseudoType,
		AllowNull: true, AllowUnknown: true, AllowDynamicType: true, AllowMarked: true,
	}
}

// coalesceFunc gives the first argument that is not null, as it is. The standard
// library's brings all arguments to one type first, which the outputs of two
// branches seldom have.
var coalesceFunc = function.New(&function.Spec{
	Description: "Gives the first of its arguments that is not null, or null.",
	VarParam:    new(anything("values")),
	Type: func(args []cty.Value) (cty.Type, error) {
		return firstValue(args).Type(), nil
	},
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) { return firstValue(args), nil },
})

func firstValue(args []cty.Value) cty.Value {
	for _, arg := range args {
		if !arg.IsKnown() {
			return cty.DynamicVal.WithSameMarks(arg)
		}
		if !arg.IsNull() {
			return arg
		}
	}
	return cty.NullVal(cty.DynamicPseudoType)
}

// lengthFunc counts characters of strings and fields of objects too: data from
// JSON holds objects where HCL would have maps.
var lengthFunc = function.New(&function.Spec{
	Description: "Counts the elements of a collection or the characters of a string.",
	Params:      []function.Parameter{{Name: "value", Type: cty.DynamicPseudoType, AllowDynamicType: true, AllowUnknown: true}},
	Type:        function.StaticReturnType(cty.Number),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		v := args[0]
		switch t := v.Type(); {
		case t == cty.DynamicPseudoType || !v.IsKnown():
			return cty.UnknownVal(cty.Number), nil
		case t == cty.String:
			return stdlib.Strlen(v)
		case t.IsCollectionType() || t.IsTupleType() || t.IsObjectType():
			return cty.NumberIntVal(int64(v.LengthInt())), nil
		}
		return cty.NilVal, function.NewArgErrorf(0, "a collection or a string is required")
	},
})

var errSequence = errors.New("a list, a set or a tuple is required")

// sequence is a parameter whose elements are gone through.
var sequence = function.Parameter{Name: "list", Type: cty.DynamicPseudoType}

func elements(v cty.Value) ([]cty.Value, error) {
	if t := v.Type(); !t.IsListType() && !t.IsSetType() && !t.IsTupleType() {
		return nil, function.NewArgError(0, errSequence)
	}
	return v.AsValueSlice(), nil
}

var sumFunc = function.New(&function.Spec{
	Description: "Adds the numbers of a list; 0 for an empty one.",
	Params:      []function.Parameter{sequence},
	Type:        function.StaticReturnType(cty.Number),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		items, err := elements(args[0])
		if err != nil {
			return cty.NilVal, err
		}
		sum := cty.Zero
		for i, item := range items {
			n, err := asNumber(item)
			if err != nil {
				return cty.NilVal, function.NewArgErrorf(0, "element %d is %s", i, err)
			}
			if !n.IsKnown() {
				return cty.UnknownVal(cty.Number), nil
			}
			if sum, err = stdlib.Add(sum, n); err != nil {
				return cty.NilVal, err
			}
		}
		return sum, nil
	},
})

var errNumber = errors.New("not a number")

func asNumber(v cty.Value) (cty.Value, error) {
	m := budget.New()
	n, err := convert.Convert(m.ReadNumber(v), cty.Number)
	switch {
	case m.Spent():
		return n, m.Err()
	case err != nil || n.IsNull():
		return n, errNumber
	}
	return n, nil
}

var oneFunc = function.New(&function.Spec{
	Description: "Gives the only element of a list, or null for an empty one.",
	Params:      []function.Parameter{sequence},
	Type: func(args []cty.Value) (cty.Type, error) {
		if !args[0].IsKnown() {
			return cty.DynamicPseudoType, nil
		}
		v, err := only(args[0])
		return v.Type(), err
	},
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) { return only(args[0]) },
})

func only(list cty.Value) (cty.Value, error) {
	items, err := elements(list)
	switch {
	case err != nil:
		return cty.DynamicVal, err
	case len(items) == 0:
		return cty.NullVal(cty.DynamicPseudoType), nil
	case len(items) == 1:
		return items[0], nil
	}
	return cty.DynamicVal, function.NewArgErrorf(0, "it has %d elements and must have one at most", len(items))
}

var indexFunc = function.New(&function.Spec{
	Description: "Gives the position of a value in a list, from 0.",
	Params:      []function.Parameter{sequence, {Name: "value", Type: cty.DynamicPseudoType, AllowNull: true}},
	Type:        function.StaticReturnType(cty.Number),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		items, err := elements(args[0])
		if err != nil {
			return cty.NilVal, err
		}
		for i, item := range items {
			equal := item.Equals(args[1])
			if !equal.IsKnown() {
				return cty.UnknownVal(cty.Number), nil
			}
			if equal.True() {
				return cty.NumberIntVal(int64(i)), nil
			}
		}
		return cty.NilVal, function.NewArgErrorf(1, "the list does not hold this value")
	},
})

// truthFunc reports whether all elements are true, or any is.
func truthFunc(all bool) function.Function {
	return function.New(&function.Spec{
		Description: "Reports whether all, or any, of the bools of a list are true.",
		Params:      []function.Parameter{{Name: "list", Type: cty.List(cty.Bool)}},
		Type:        function.StaticReturnType(cty.Bool),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			unknown := false
			for _, v := range args[0].AsValueSlice() {
				switch {
				case !v.IsKnown():
					unknown = true
				case (!v.IsNull() && v.True()) != all:
					return cty.BoolVal(!all), nil
				}
			}
			if unknown {
				return cty.UnknownVal(cty.Bool), nil
			}
			return cty.BoolVal(all), nil
		},
	})
}

var (
	prefixFunc   = twoTexts("Reports whether a string begins with another.", "prefix", strings.HasPrefix)
	suffixFunc   = twoTexts("Reports whether a string ends with another.", "suffix", strings.HasSuffix)
	containsFunc = twoTexts("Reports whether a string contains another.", "substr", strings.Contains)
)

func twoTexts(description, second string, test func(a, b string) bool) function.Function {
	return function.New(&function.Spec{
		Description: description,
		Params:      []function.Parameter{{Name: "text", Type: cty.String}, {Name: second, Type: cty.String}},
		Type:        function.StaticReturnType(cty.Bool),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			return cty.BoolVal(test(args[0].AsString(), args[1].AsString())), nil
		},
	})
}

// replaceFunc uses the search string as a regular expression when it is written
// between slashes.
var replaceFunc = function.New(&function.Spec{
	Description: "Replaces every occurrence of a string, or of a /regular expression/.",
	Params: []function.Parameter{
		{Name: "text", Type: cty.String}, {Name: "search", Type: cty.String}, {Name: "replacement", Type: cty.String},
	},
	Type: function.StaticReturnType(cty.String),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		text, search, replacement := args[0].AsString(), args[1].AsString(), args[2].AsString()
		if len(search) < 2 || search[0] != '/' || search[len(search)-1] != '/' {
			if err := replacedSize(text, replacement, strings.Count(text, search), false); err != nil {
				return cty.NilVal, err
			}
			return stdlib.Replace(args[0], args[1], args[2])
		}
		search = search[1 : len(search)-1]
		if pattern, err := regexp.Compile(search); err == nil { // otherwise stdlib reports what is wrong
			if err := replacedSize(text, replacement, len(pattern.FindAllStringIndex(text, -1)), true); err != nil {
				return cty.NilVal, err
			}
		}
		return stdlib.RegexReplace(args[0], cty.StringVal(search), args[2])
	},
})

// timeaddFunc is that of the standard library, which reports a wrong duration in the
// words of Go's package time.
var timeaddFunc = function.New(&function.Spec{
	Description: "Adds a duration to a time of RFC 3339.",
	Params:      []function.Parameter{{Name: "timestamp", Type: cty.String}, {Name: "duration", Type: cty.String}},
	Type:        function.StaticReturnType(cty.String),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		if _, err := time.ParseDuration(args[1].AsString()); err != nil {
			return cty.NilVal, function.NewArgErrorf(1, "not a duration with a unit, such as \"30s\", \"-5m\" or \"1h30m\"")
		}
		if _, err := time.Parse(time.RFC3339, args[0].AsString()); err != nil {
			return cty.NilVal, function.NewArgErrorf(0, "not a time of RFC 3339, such as \"2006-01-02T15:04:05Z\"")
		}
		return stdlib.TimeAdd(args[0], args[1])
	},
})

var timecmpFunc = function.New(&function.Spec{
	Description: "Compares two RFC 3339 times: -1, 0 or 1.",
	Params:      []function.Parameter{{Name: "a", Type: cty.String}, {Name: "b", Type: cty.String}},
	Type:        function.StaticReturnType(cty.Number),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		var times [2]time.Time
		for i, arg := range args {
			var err error
			if times[i], err = time.Parse(time.RFC3339, arg.AsString()); err != nil {
				return cty.NilVal, function.NewArgErrorf(i, "not a time of RFC 3339, such as \"2006-01-02T15:04:05Z\"")
			}
		}
		return cty.NumberIntVal(int64(times[0].Compare(times[1]))), nil
	},
})

var urldecodeFunc = function.New(&function.Spec{
	Description: "Undoes urlencode.",
	Params:      []function.Parameter{{Name: "text", Type: cty.String}},
	Type:        function.StaticReturnType(cty.String),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		text, err := url.QueryUnescape(args[0].AsString())
		if err != nil {
			return cty.NilVal, function.NewArgErrorf(0, "not URL-encoded: %s", err)
		}
		return cty.StringVal(text), nil
	},
})

var sensitiveFunc = function.New(&function.Spec{
	Description: "Keeps a value out of messages.",
	Params:      []function.Parameter{anything("value")},
	Type:        func(args []cty.Value) (cty.Type, error) { return args[0].Type(), nil },
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		return args[0].Mark(Sensitive), nil
	},
})

var nonsensitiveFunc = function.New(&function.Spec{
	Description: "Lets a sensitive value be shown.",
	Params:      []function.Parameter{anything("value")},
	Type:        func(args []cty.Value) (cty.Type, error) { return args[0].Type(), nil },
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		v, _ := args[0].UnmarkDeep()
		return v, nil
	},
})

// Sensitive marks values that must not be shown.
const Sensitive = mark("sensitive")

type mark string
