package funcs

import (
	"maps"

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

// Table are the functions of all expressions. None of them reads a file,
// the clock or a source of randomness: a run evaluates to the same values wherever and
// whenever it is resumed.
func Table() map[string]function.Function {
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
	"format":     guarded(stdlib.FormatFunc, formatSize),
	"formatlist": guarded(stdlib.FormatListFunc, formatSize),
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
}

var collectionFunctions = map[string]function.Function{
	"chunklist":       stdlib.ChunklistFunc,
	"coalescelist":    stdlib.CoalesceListFunc,
	"compact":         stdlib.CompactFunc,
	"concat":          stdlib.ConcatFunc,
	"contains":        stdlib.ContainsFunc,
	"distinct":        distinctFunc,
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
	"jsondecode":   jsonDecodeFunc,
	"jsonencode":   jsonEncodeFunc,
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

// Refused are functions that other tools have and flows do not, with what to
// use in their place.
var Refused = map[string]string{
	"timestamp":     "A run must evaluate to the same values after a restart: use run.scheduled_at, the nominal time of the run.",
	"plantimestamp": "Use run.scheduled_at, the nominal time of the run.",
	"uuid":          "A run must evaluate to the same values after a restart: use run.id, or let a task make one.",
	"bcrypt":        "Its result is random, and a run must evaluate to the same values after a restart: let a task compute it.",
}
