package funcs

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"

	"github.com/flowhost/flowhost/flows/internal/budget"
	"github.com/flowhost/flowhost/flows/internal/syntax"
)

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

func productSize(args []cty.Value) error {
	size := 1
	for _, arg := range args {
		arg, _ = arg.Unmark()
		if !arg.IsKnown() || arg.IsNull() || !arg.CanIterateElements() {
			return nil
		}
		if size *= arg.LengthInt(); size > budget.MaxProduct {
			return fmt.Errorf("the product has more than %d elements", budget.MaxProduct)
		}
	}
	return nil
}

// maxText bounds the strings that functions make of small ones, in bytes.
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
		items += budget.ElementCount(list)
	}
	separator, _ := args[0].Unmark()
	if separator.IsKnown() && !separator.IsNull() && len(separator.AsString())*items > maxText {
		return errTextSize
	}
	return nil
}

// directive is one of a format, up to its verb: flags, width, precision and which
// argument it shows.
var directive = regexp.MustCompile(`%[^a-zA-Z%]*`)

// formatSize takes each directive for as long as the longest argument and all
// numbers in it. Of the strings of formatlist it counts all.
func formatSize(args []cty.Value) error {
	format, _ := args[0].Unmark()
	if !format.IsKnown() || format.IsNull() {
		return nil
	}
	texts, longest := 1, 0
	for _, arg := range args[1:] {
		if arg.Type().IsListType() || arg.Type().IsSetType() || arg.Type().IsTupleType() {
			texts = max(texts, budget.ElementCount(arg))
		}
	}
	for _, arg := range args[1:] {
		if size := shownSize(arg); arg.Type().IsPrimitiveType() {
			longest = max(longest, size*texts)
		} else {
			longest = max(longest, size)
		}
	}
	size := 0
	for _, d := range directive.FindAllString(format.AsString(), -1) {
		size += longest
		for _, digits := range strings.FieldsFunc(d, func(r rune) bool { return r < '0' || r > '9' }) {
			n, err := strconv.Atoi(digits)
			if err != nil || n > maxText {
				return errTextSize
			}
			size += n * texts
		}
		if size > maxText {
			return errTextSize
		}
	}
	return nil
}

// shownSize is about how many bytes a value has as a string.
func shownSize(v cty.Value) int {
	v, _ = v.Unmark()
	switch {
	case !v.IsKnown() || v.IsNull():
		return 0
	case v.Type() == cty.String:
		return len(v.AsString())
	case !v.CanIterateElements():
		return len("12345678")
	}
	size := 0
	for it := v.ElementIterator(); it.Next(); {
		key, item := it.Element()
		if size++; key.Type() == cty.String {
			size += len(key.AsString())
		}
		size += shownSize(item)
	}
	return size
}

// replacedSize refuses a replacement by which a string would grow too much: found is
// how often, and each $ in the place of an expression may bring in all that it
// has found.
func replacedSize(text, replacement string, found int, expression bool) error {
	size := found * len(replacement)
	if expression {
		size += strings.Count(replacement, "$") * len(text)
	}
	if size > maxText {
		return errTextSize
	}
	return nil
}

var errTextSize = fmt.Errorf("the string would have more than %d bytes", maxText)

// yamlSize refuses documents that could grow by their aliases, each of which is
// replaced by all that its anchor holds.
func yamlSize(args []cty.Value) error {
	text, _ := args[0].Unmark()
	if !text.IsKnown() || text.IsNull() {
		return nil
	}
	if opened(text.AsString()) > syntax.MaxNesting {
		return fmt.Errorf("the string has lists or objects nested more than %d deep", syntax.MaxNesting)
	}
	anchors, aliases := strings.Count(text.AsString(), "&"), strings.Count(text.AsString(), "*")
	size := float64(len(text.AsString()))
	for range min(anchors, aliases) {
		if size *= float64(aliases)/float64(anchors) + 1; size > maxText {
			return errors.New("the string has too many anchors and aliases")
		}
	}
	return nil
}

// opened is how many brackets are open at once at most, those in quotes among
// them. What the parser does for each grows with those that are open already.
func opened(text string) int {
	depth, most := 0, 0
	for i := range len(text) {
		switch text[i] {
		case '[', '{':
			depth++
			most = max(most, depth)
		case ']', '}':
			depth = max(depth-1, 0)
		}
	}
	return most
}
