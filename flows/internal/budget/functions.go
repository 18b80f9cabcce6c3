package budget

import (
	"math"
	"regexp/syntax"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/flowhost/flowhost/flows/internal/ctyjson"
)

// weight is what a call of a function costs, charged before it is made. What the result
// weighs is charged after.
type weight struct {
	work     work
	takes    cty.Type // of the first argument, when the function itself converts it
	lists    bool     // it takes tuples, and makes lists of all of them
	lazy     bool     // the function evaluates its arguments itself
	lazyFrom int      // from this argument on, if not 0
}

type work func(m *Budget, args []cty.Value) int

// Weights are those of all functions. The figures are measured: see
// TestWorstExpressions, which looks for arguments that cost more than they weigh.
var Weights = map[string]weight{
	"abs":      {work: everyPart},
	"ceil":     {work: everyPart},
	"floor":    {work: everyPart},
	"log":      {work: everyPart},
	"max":      {work: everyPart},
	"min":      {work: everyPart},
	"parseint": {work: parseWork},
	"pow":      {work: everyPart},
	"signum":   {work: everyPart},
	"sum":      {work: sumWork},

	"chomp":       {work: bytesBy(8)},
	"format":      {work: formatWork},
	"formatlist":  {work: formatWork},
	"indent":      {work: bytesBy(8)},
	"join":        {work: everyPart},
	"lower":       {work: bytesBy(16)},
	"regex":       {work: regexWork(false)},
	"regexall":    {work: regexWork(true)},
	"replace":     {work: replaceWork},
	"split":       {work: splitWork},
	"strrev":      {work: graphemes},
	"substr":      {work: graphemes},
	"title":       {work: bytesBy(16)},
	"trim":        {work: trimWork},
	"trimprefix":  {work: bytesBy(32)},
	"trimspace":   {work: bytesBy(32)},
	"trimsuffix":  {work: bytesBy(32)},
	"upper":       {work: bytesBy(16)},
	"startswith":  {work: bytesBy(64)},
	"endswith":    {work: bytesBy(64)},
	"strcontains": {work: bytesBy(32)},
	"formatdate":  {work: bytesBy(4)},
	"timeadd":     {work: bytesBy(4)},
	"timecmp":     {work: bytesBy(4)},

	"alltrue":         {work: everyPart},
	"anytrue":         {work: everyPart},
	"chunklist":       {work: everyPart},
	"coalesce":        {work: justArguments},
	"coalescelist":    {work: unified},
	"compact":         {work: everyPart},
	"concat":          {work: unified},
	"contains":        {work: searched},
	"distinct":        {work: distinctWork},
	"element":         {work: everyPart},
	"flatten":         {work: deepParts},
	"index":           {work: searched},
	"keys":            {work: everyPart},
	"length":          {work: lengthWork},
	"lookup":          {work: lookupWork},
	"merge":           {work: everyPart},
	"one":             {work: everyPart},
	"range":           {work: rangeWork},
	"reverse":         {work: everyPart},
	"setintersection": {work: hashed},
	"setproduct":      {work: productWork, lists: true},
	"setsubtract":     {work: hashed},
	"setunion":        {work: hashed},
	"slice":           {work: everyPart},
	"sort":            {work: sortWork},
	"values":          {work: everyPart},
	"zipmap":          {work: everyPart},

	"base64decode": {work: bytesBy(16)},
	"base64encode": {work: bytesBy(16)},
	"csvdecode":    {work: bytesBy(1)},
	"jsondecode":   {work: bytesBy(8)},
	"jsonencode":   {work: everyPart},
	"urlencode":    {work: bytesBy(8)},
	"urldecode":    {work: bytesBy(8)},
	"yamldecode":   {work: yamlWork},
	"yamlencode":   {work: yamlEncodeWork},
	"md5":          {work: bytesBy(64)},
	"sha1":         {work: bytesBy(64)},
	"sha256":       {work: bytesBy(64)},
	"sha512":       {work: bytesBy(64)},
	"cidrhost":     {work: bytesBy(4)},
	"cidrnetmask":  {work: bytesBy(4)},
	"cidrsubnet":   {work: bytesBy(4)},
	"cidrsubnets":  {work: cidrWork},

	"can":          {lazy: true},
	"try":          {lazy: true},
	"convert":      {work: everyPart, lazyFrom: 1},
	"nonsensitive": {work: deepParts},
	"sensitive":    {work: justArguments},
	"tobool":       {work: everyPart, takes: cty.Bool},
	"tolist":       {work: everyPart, takes: cty.List(cty.DynamicPseudoType)},
	"tomap":        {work: everyPart, takes: cty.Map(cty.DynamicPseudoType)},
	"tonumber":     {work: everyPart, takes: cty.Number},
	"toset":        {work: everyPart, takes: cty.Set(cty.DynamicPseudoType)},
	"tostring":     {work: everyPart, takes: cty.String},

	// Those that read files are charged for what they read by the size of the result.
	"file":         {work: everyPart},
	"filebase64":   {work: everyPart},
	"fileexists":   {work: everyPart},
	"templatefile": {work: everyPart},
}

func justArguments(_ *Budget, args []cty.Value) int { return len(args) }

// hefts sums what each argument costs.
func hefts(m *Budget, args []cty.Value, cost func(heft) int) int {
	sum := 0
	for _, arg := range args {
		if sum += 2 + cost(m.weigh(arg)); sum >= m.left {
			break
		}
	}
	return sum
}

// everyPart is the least: cty looks for marks in all parts of all arguments.
func everyPart(m *Budget, args []cty.Value) int {
	return hefts(m, args, func(h heft) int { return h.parts/2 + h.text() })
}

// deepParts is for what goes through all parts, and into each again.
func deepParts(m *Budget, args []cty.Value) int {
	return hefts(m, args, func(h heft) int { return h.deep/2 + h.text() })
}

// bytesBy is a unit for some bytes.
func bytesBy(n int) work {
	return func(m *Budget, args []cty.Value) int {
		return hefts(m, args, func(h heft) int { return h.parts/2 + h.ascii/n + h.wide/min(n, 12) })
	}
}

func graphemes(m *Budget, args []cty.Value) int { return hefts(m, args, heft.graphemes) }

func lengthWork(m *Budget, args []cty.Value) int {
	if len(args) == 1 && args[0].Type() == cty.String {
		return graphemes(m, args)
	}
	return everyPart(m, args)
}

// stringAt is an argument that is a known text, "" otherwise.
func stringAt(args []cty.Value, i int) string {
	if i >= len(args) {
		return ""
	}
	v, _ := args[i].Unmark()
	if v.Type() != cty.String || !v.IsKnown() || v.IsNull() {
		return ""
	}
	return v.AsString()
}

func parseWork(m *Budget, args []cty.Value) int {
	// Its error spells the type of what is no string.
	if len(stringAt(args, 0)) > ctyjson.MaxDigits {
		m.fail(ctyjson.ErrDigits)
	}
	return 10 + 6*deepParts(m, args)
}

func sumWork(m *Budget, args []cty.Value) int {
	return hefts(m, args, func(h heft) int { return 3*h.parts + h.bytes()/8 })
}

// formatWork is for numbers and for what is shown as JSON, too.
func formatWork(m *Budget, args []cty.Value) int {
	cost := deepParts(m, args) + everyPart(m, args)
	for _, arg := range args {
		cost += m.digits(arg)
	}
	return cost + len(stringAt(args, 0))/2
}

// splitWork counts the pieces.
func splitWork(m *Budget, args []cty.Value) int {
	return everyPart(m, args) + strings.Count(stringAt(args, 1), stringAt(args, 0))
}

// trimWork looks for each character among those that are trimmed.
func trimWork(m *Budget, args []cty.Value) int {
	return everyPart(m, args) + len(stringAt(args, 0))/16*(1+len(stringAt(args, 1))/16)
}

// unified is for functions that bring the elements of several lists to one type.
func unified(m *Budget, args []cty.Value) int {
	cost, first := everyPart(m, args)+len(args)*len(args)/50, cty.NilType
	for _, arg := range args {
		if t := arg.Type(); t.IsCollectionType() {
			if first == cty.NilType {
				first = t
			}
			if !t.Equals(first) {
				cost += m.pairs(arg) + m.digits(arg)
			}
		}
	}
	return cost
}

// searched is for functions that compare one value with all elements: cty looks for
// marks in both each time.
func searched(m *Budget, args []cty.Value) int {
	cost := deepParts(m, args) * 2
	if len(args) == 2 {
		cost += m.fractions(args[0]) + ElementCount(args[0])*(1+m.weigh(args[1]).parts)
		if isNumber(args[1]) {
			cost += ElementCount(args[0]) * m.fractions(args[1])
		}
	}
	return cost
}

// distinctWork hashes each element once.
func distinctWork(m *Budget, args []cty.Value) int {
	cost := deepParts(m, args)
	for _, arg := range args {
		arg, _ = arg.Unmark()
		if cost < m.left && ElementCount(arg) > 0 {
			cost += m.collisions(arg.AsValueSlice())
		}
	}
	return cost
}

// hashed is for functions of sets.
func hashed(m *Budget, args []cty.Value) int {
	cost := unified(m, args) + deepParts(m, args)
	for _, arg := range args {
		arg, _ = arg.Unmark()
		if cost < m.left && ElementCount(arg) > 0 {
			cost += 3 * m.collisions(arg.AsValueSlice())
		}
	}
	return cost
}

// rangeWork is for the numbers that there may be at most, unless few are asked for.
func rangeWork(_ *Budget, args []cty.Value) int {
	if len(args) == 1 && args[0].Type() == cty.Number && args[0].IsKnown() && !args[0].IsMarked() && !args[0].IsNull() {
		if n, _ := args[0].AsBigFloat().Int64(); n >= 0 && n < 1024 {
			return int(n)*2/3 + 5
		}
	}
	return 700
}

func lookupWork(m *Budget, args []cty.Value) int {
	cost := everyPart(m, args)
	if len(args) == 3 {
		cost += m.pairs(args[2])
	}
	return cost
}

func productWork(m *Budget, args []cty.Value) int {
	size := 1
	for _, arg := range args {
		if size *= ElementCount(arg); size > MaxProduct {
			return everyPart(m, args) // it is refused
		}
	}
	return unified(m, args) + size*(2+len(args))
}

// sortWork compares strings that may differ at their ends only.
func sortWork(m *Budget, args []cty.Value) int {
	return hefts(m, args, func(h heft) int {
		rounds := int(math.Log2(float64(h.parts + 1)))
		return h.parts*(3+rounds/2) + rounds*h.bytes()/500
	})
}

func yamlWork(m *Budget, args []cty.Value) int { return bytesBy(1)(m, args) * 3 }

func yamlEncodeWork(m *Budget, args []cty.Value) int {
	cost := deepParts(m, args) + 10*everyPart(m, args)
	for _, arg := range args {
		cost += m.digits(arg)
	}
	return cost
}

func cidrWork(m *Budget, args []cty.Value) int { return 10 * everyPart(m, args) }

// regexWork is what a pattern costs with a string: Go's expressions go through the
// text once, with all instructions of the pattern at each byte.
func regexWork(all bool) work {
	return func(m *Budget, args []cty.Value) int {
		return everyPart(m, args) + patternCost(stringAt(args, 0), len(stringAt(args, 1)), all)
	}
}

func replaceWork(m *Budget, args []cty.Value) int {
	cost := everyPart(m, args) + len(stringAt(args, 0))/8
	if search := stringAt(args, 1); len(search) > 1 && search[0] == '/' && search[len(search)-1] == '/' {
		cost += 4 * patternCost(search[1:len(search)-1], len(stringAt(args, 0)), true)
	}
	return cost
}

func patternCost(pattern string, length int, all bool) int {
	const compile = 2 // units for each instruction
	if len(pattern) > 1<<14 {
		return Max
	}
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return len(pattern)
	}
	instructions := instructionsOf(parsed)
	cost := len(pattern)/4 + compile*instructions
	passes := 1
	if all && rescans(parsed, false) {
		passes = 1 + length/16
	}
	return cost + length*passes/40*(1+instructions)
}

// instructionsOf is about how long the program of a pattern is.
func instructionsOf(e *syntax.Regexp) int {
	n := 1 + len(e.Rune)/2
	for _, sub := range e.Sub {
		n += instructionsOf(sub)
	}
	if e.Op == syntax.OpRepeat {
		n *= max(e.Min, e.Max, 1) + 1
	}
	return min(n, 1<<20)
}

// rescans reports whether a search may read far beyond the match that it finds, so
// that the next one goes through the same text again: something without bound is
// one of several ways.
func rescans(e *syntax.Regexp, choice bool) bool {
	switch e.Op {
	case syntax.OpStar, syntax.OpPlus:
		if choice || e.Sub[0].Op > syntax.OpAnyChar {
			return true
		}
	case syntax.OpRepeat:
		if e.Max < 0 && choice {
			return true
		}
		choice = true
	case syntax.OpAlternate, syntax.OpQuest:
		choice = true
	}
	for _, sub := range e.Sub {
		if rescans(sub, choice) {
			return true
		}
	}
	return false
}

// MaxProduct bounds the result of setproduct, whose size is the product of the
// sizes of its arguments.
const MaxProduct = 100_000

// ElementCount is 0 for what has none, or none yet.
func ElementCount(v cty.Value) int {
	v, _ = v.Unmark()
	if !v.IsKnown() || v.IsNull() || !v.CanIterateElements() {
		return 0
	}
	return v.LengthInt()
}
