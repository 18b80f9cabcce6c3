package flows

import (
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/hashicorp/go-cty-funcs/cidr"
	"github.com/hashicorp/go-cty-funcs/crypto"
	"github.com/hashicorp/go-cty-funcs/encoding"
	"github.com/hashicorp/hcl/v2/ext/tryfunc"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	ctyyaml "github.com/zclconf/go-cty-yaml"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

// runFunctions are the functions of all expressions. None of them reads a file,
// the clock or a source of randomness: a run evaluates to the same wherever and
// whenever it is taken up again.
func runFunctions() map[string]function.Function {
	all := ownFunctions()
	for _, library := range []map[string]function.Function{numberFunctions, textFunctions, collectionFunctions, codingFunctions, typeFunctions} {
		maps.Copy(all, library)
	}
	return all
}

var numberFunctions = map[string]function.Function{
	"abs":      stdlib.AbsoluteFunc,
	"ceil":     stdlib.CeilFunc,
	"floor":    stdlib.FloorFunc,
	"log":      stdlib.LogFunc,
	"max":      stdlib.MaxFunc,
	"min":      stdlib.MinFunc,
	"parseint": stdlib.ParseIntFunc,
	"pow":      stdlib.PowFunc,
	"signum":   stdlib.SignumFunc,
}

var textFunctions = map[string]function.Function{
	"chomp":      stdlib.ChompFunc,
	"format":     stdlib.FormatFunc,
	"formatlist": stdlib.FormatListFunc,
	"indent":     guarded(stdlib.IndentFunc, indentSize),
	"join":       guarded(stdlib.JoinFunc, joinSize),
	"lower":      stdlib.LowerFunc,
	"regex":      stdlib.RegexFunc,
	"regexall":   stdlib.RegexAllFunc,
	"split":      stdlib.SplitFunc,
	"strrev":     stdlib.ReverseFunc,
	"substr":     stdlib.SubstrFunc,
	"title":      stdlib.TitleFunc,
	"trim":       stdlib.TrimFunc,
	"trimprefix": stdlib.TrimPrefixFunc,
	"trimspace":  stdlib.TrimSpaceFunc,
	"trimsuffix": stdlib.TrimSuffixFunc,
	"upper":      stdlib.UpperFunc,
	"formatdate": stdlib.FormatDateFunc,
	"timeadd":    stdlib.TimeAddFunc,
}

var collectionFunctions = map[string]function.Function{
	"chunklist":       stdlib.ChunklistFunc,
	"coalescelist":    stdlib.CoalesceListFunc,
	"compact":         stdlib.CompactFunc,
	"concat":          stdlib.ConcatFunc,
	"contains":        stdlib.ContainsFunc,
	"distinct":        guarded(stdlib.DistinctFunc, compared),
	"element":         stdlib.ElementFunc,
	"flatten":         stdlib.FlattenFunc,
	"keys":            stdlib.KeysFunc,
	"lookup":          stdlib.LookupFunc,
	"merge":           stdlib.MergeFunc,
	"range":           stdlib.RangeFunc, // stops at 1024 values
	"reverse":         stdlib.ReverseListFunc,
	"setintersection": stdlib.SetIntersectionFunc,
	"setproduct":      guarded(stdlib.SetProductFunc, productSize),
	"setsubtract":     stdlib.SetSubtractFunc,
	"setunion":        stdlib.SetUnionFunc,
	"slice":           stdlib.SliceFunc,
	"sort":            stdlib.SortFunc,
	"values":          stdlib.ValuesFunc,
	"zipmap":          stdlib.ZipmapFunc,
}

var codingFunctions = map[string]function.Function{
	"base64decode": encoding.Base64DecodeFunc,
	"base64encode": encoding.Base64EncodeFunc,
	"csvdecode":    stdlib.CSVDecodeFunc,
	"jsondecode":   stdlib.JSONDecodeFunc,
	"jsonencode":   stdlib.JSONEncodeFunc,
	"urlencode":    encoding.URLEncodeFunc,
	"yamldecode":   guarded(ctyyaml.YAMLDecodeFunc, yamlSize),
	"yamlencode":   ctyyaml.YAMLEncodeFunc,
	"md5":          crypto.Md5Func,
	"sha1":         crypto.Sha1Func,
	"sha256":       crypto.Sha256Func,
	"sha512":       crypto.Sha512Func,
	"cidrhost":     cidr.HostFunc,
	"cidrnetmask":  cidr.NetmaskFunc,
	"cidrsubnet":   cidr.SubnetFunc,
	"cidrsubnets":  cidr.SubnetsFunc,
}

var typeFunctions = map[string]function.Function{
	"can":      tryfunc.CanFunc,
	"try":      tryfunc.TryFunc,
	"convert":  typeexpr.ConvertFunc,
	"tobool":   stdlib.MakeToFunc(cty.Bool),
	"tolist":   stdlib.MakeToFunc(cty.List(cty.DynamicPseudoType)),
	"tomap":    stdlib.MakeToFunc(cty.Map(cty.DynamicPseudoType)),
	"tonumber": stdlib.MakeToFunc(cty.Number),
	"toset":    stdlib.MakeToFunc(cty.Set(cty.DynamicPseudoType)),
	"tostring": stdlib.MakeToFunc(cty.String),
}

// guarded puts a check of the arguments before a function.
func guarded(f function.Function, check func([]cty.Value) error) function.Function {
	return function.New(&function.Spec{
		Description: f.Description(),
		Params:      f.Params(),
		VarParam:    f.VarParam(),
		Type: func(args []cty.Value) (cty.Type, error) {
			if err := check(args); err != nil {
				return cty.NilType, err
			}
			return f.ReturnTypeForValues(args)
		},
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) { return f.Call(args) },
	})
}

// maxProduct bounds the result of setproduct, whose size is the product of the
// sizes of its arguments.
const maxProduct = 100_000

func productSize(args []cty.Value) error {
	size := 1
	for _, arg := range args {
		arg, _ = arg.Unmark()
		if !arg.IsKnown() || arg.IsNull() || !arg.CanIterateElements() {
			return nil
		}
		if size *= arg.LengthInt(); size > maxProduct {
			return fmt.Errorf("the product has more than %d elements", maxProduct)
		}
	}
	return nil
}

// maxText bounds the texts that functions make of small ones, in bytes.
const maxText = 16 << 20

func indentSize(args []cty.Value) error {
	if !args[0].IsKnown() || !args[1].IsKnown() || args[0].IsNull() || args[1].IsNull() {
		return nil
	}
	lines := strings.Count(args[1].AsString(), "\n")
	if n, _ := args[0].AsBigFloat().Float64(); n*float64(lines) > maxText {
		return errTextSize
	}
	return nil
}

func joinSize(args []cty.Value) error {
	items := 0
	for _, list := range args[1:] {
		if list, _ = list.Unmark(); list.IsKnown() && !list.IsNull() {
			items += list.LengthInt()
		}
	}
	separator, _ := args[0].Unmark()
	if separator.IsKnown() && !separator.IsNull() && len(separator.AsString())*items > maxText {
		return errTextSize
	}
	return nil
}

var errTextSize = fmt.Errorf("the text would have more than %d bytes", maxText)

// yamlSize refuses texts whose aliases, each of which stands for all that its
// anchor holds, could make more of them than they are.
func yamlSize(args []cty.Value) error {
	text, _ := args[0].Unmark()
	if !text.IsKnown() || text.IsNull() {
		return nil
	}
	anchors, aliases := strings.Count(text.AsString(), "&"), strings.Count(text.AsString(), "*")
	size := float64(len(text.AsString()))
	for range min(anchors, aliases) {
		if size *= float64(aliases)/float64(anchors) + 1; size > maxText {
			return errors.New("the text has too many anchors and aliases")
		}
	}
	return nil
}

// maxCompared bounds the lists whose elements are compared with each other.
const maxCompared = 10_000

func compared(args []cty.Value) error {
	for _, arg := range args {
		arg, _ = arg.Unmark()
		if arg.IsKnown() && !arg.IsNull() && arg.CanIterateElements() && arg.LengthInt() > maxCompared {
			return fmt.Errorf("the list has more than %d elements", maxCompared)
		}
	}
	return nil
}

// refused are functions that other tools have and flows do not, with what to
// use in their place.
var refused = map[string]string{
	"timestamp":     "A run must evaluate to the same whenever it is taken up again: use run.scheduled_at, the nominal time of the run.",
	"plantimestamp": "Use run.scheduled_at, the nominal time of the run.",
	"uuid":          "A run must evaluate to the same whenever it is taken up again: use run.id, or let a task make one.",
	"bcrypt":        "Its result is random, and a run must evaluate to the same whenever it is taken up again: let a task compute it.",
}

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

// lengthFunc counts characters of texts and fields of objects too: data from
// JSON holds objects where HCL would have maps.
var lengthFunc = function.New(&function.Spec{
	Description: "Counts the elements of a collection or the characters of a text.",
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
		return cty.NilVal, function.NewArgErrorf(0, "a collection or a text is required")
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
