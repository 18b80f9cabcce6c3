package flows

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/flowhost/flowhost/flows/internal/budget"
	"github.com/flowhost/flowhost/flows/internal/ctyjson"
	"github.com/flowhost/flowhost/flows/internal/diag"
)

// This file reads deploy-time arguments. Each method takes an argument that may
// be absent and gives ok false when there is no value to use: absent, or
// wrong and reported.

// value evaluates an argument to a type.
func (s *exprContext) value(a *hcl.Attribute, want cty.Type) (cty.Value, bool) {
	if a == nil {
		return cty.NilVal, false
	}
	v, ok := s.evaluate(a)
	if !ok {
		return cty.NilVal, false
	}
	if v.ContainsMarked() {
		s.diags.Add(RuleMisplaced, a.Expr.Range(), "Sensitive value where it would be shown",
			"%q is shown in lists and messages: a sensitive value can be given to tasks, in input and config, and nowhere else.", a.Name)
		return cty.NilVal, false
	}
	given := v
	v, err := convert.Convert(given, want)
	switch {
	case err != nil:
		s.diags.Add(RuleType, a.Expr.Range(), "Wrong type", "%q must be %s%s.", a.Name, s.schema.Argument(a.Name).Kind.Phrase(), misfit(given, err))
		return cty.NilVal, false
	case !v.IsWhollyKnown():
		return cty.NilVal, false // what makes it unknown is reported at its place
	case v.IsNull():
		if word := s.schema.Argument(a.Name); word.Required || word.Either {
			s.diags.Add(RuleMissing, a.Expr.Range(), "Missing argument", "%s needs the argument %q, and null is none.", diag.Sentence(s.schema.Title), a.Name)
		}
		return cty.NilVal, false // as if it were not written
	}
	return v, true
}

func (s *exprContext) text(a *hcl.Attribute) (string, bool) {
	v, ok := s.value(a, cty.String)
	if !ok {
		return "", false
	}
	return v.AsString(), true
}

// word is a string that must be one of those in the table.
func (s *exprContext) word(a *hcl.Attribute) (string, bool) {
	v, ok := s.text(a)
	if !ok {
		return "", false
	}
	return v, s.allowed(a, v)
}

// someWords are strings each of which must be one of those in the table.
func (s *exprContext) someWords(a *hcl.Attribute) ([]string, bool) {
	v, ok := s.value(a, cty.List(cty.String))
	if !ok {
		return nil, false
	}
	var words []string
	for _, one := range v.AsValueSlice() {
		if one.IsNull() {
			s.diags.Add(RuleValue, a.Expr.Range(), "Value not allowed", "%q has a null in it.", a.Name)
			return nil, false
		}
		if words = append(words, one.AsString()); !s.allowed(a, one.AsString()) {
			return nil, false
		}
	}
	if len(words) == 0 {
		s.diags.Add(RuleValue, a.Expr.Range(), "Value not allowed", "%q is empty: name one of %s at least.", a.Name, diag.Join(s.schema.Argument(a.Name).OneOf, "and"))
	}
	return words, len(words) > 0
}

// allowed reports whether a string is one of those in the table.
func (s *exprContext) allowed(a *hcl.Attribute, text string) bool {
	allowed := s.schema.Argument(a.Name).OneOf
	if slices.Contains(allowed, text) {
		return true
	}
	s.diags.Add(RuleValue, a.Expr.Range(), "Value not allowed", "%q cannot be %q.%s", a.Name, text, diag.DidYouMean(text, "", allowed))
	return false
}

func (s *exprContext) flag(a *hcl.Attribute) (bool, bool) {
	v, ok := s.value(a, cty.Bool)
	return ok && v.True(), ok
}

// whole is an integer from least to most.
func (s *exprContext) whole(a *hcl.Attribute, least, most int64) (int64, bool) {
	v, ok := s.value(a, cty.Number)
	if !ok {
		return 0, false
	}
	n, accuracy := v.AsBigFloat().Int64()
	if accuracy != big.Exact || n < least || n > most {
		bounds := fmt.Sprintf("%d or more", least)
		if most < math.MaxInt32 {
			bounds = fmt.Sprintf("from %d to %d", least, most)
		}
		s.diags.Add(RuleValue, a.Expr.Range(), "Value not allowed", "%q must be an integer, %s.", a.Name, bounds)
		return 0, false
	}
	return n, true
}

// maxPriority is the highest priority of a task, and the lowest turned round.
const maxPriority = 100

func (s *exprContext) priority(a *hcl.Attribute, inherited int) int {
	if n, ok := s.whole(a, -maxPriority, maxPriority); ok {
		return int(n)
	}
	return inherited
}

// share is a number from 0 to 1.
func (s *exprContext) share(a *hcl.Attribute) (float64, bool) {
	v, ok := s.value(a, cty.Number)
	if !ok {
		return 0, false
	}
	f, _ := v.AsBigFloat().Float64()
	if f < 0 || f > 1 {
		s.diags.Add(RuleValue, a.Expr.Range(), "Value not allowed", "%q must be a number from 0 to 1.", a.Name)
		return 0, false
	}
	return f, true
}

// duration is a positive length of time.
func (s *exprContext) duration(a *hcl.Attribute) (time.Duration, bool) {
	text, ok := s.text(a)
	if !ok {
		return 0, false
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		s.diags.Add(RuleValue, a.Expr.Range(), "Not a duration",
			"%q must be a positive duration with a unit, such as \"250ms\", \"30s\", \"5m\" or \"1h30m\"; %q is not.", a.Name, text)
		return 0, false
	}
	if d > maxDuration {
		s.diags.Add(RuleValue, a.Expr.Range(), "Duration too long", "%q is 100 years at most; %q is more.", a.Name, text)
		return 0, false
	}
	return d, true
}

// ParseSize reads a positive number of bytes below 1 TiB, plain or with a unit,
// "64KiB" or "1.5GB".
func ParseSize(text string) (int64, bool) {
	factor, digits := 1.0, text
	for _, unit := range sizeUnits {
		if rest, found := strings.CutSuffix(text, unit.suffix); found {
			factor, digits = unit.bytes, strings.TrimSpace(rest)
			break
		}
	}
	n, err := strconv.ParseFloat(digits, 64)
	bytes := n * factor
	return int64(bytes), err == nil && bytes >= 1 && bytes < 1<<40
}

// FormatSize is a size as [ParseSize] reads it, in the largest unit that it is a
// multiple of.
func FormatSize(n int64) string {
	for i := len(sizeUnits) - 1; i >= 0; i-- {
		u := sizeUnits[i]
		if unit := int64(u.bytes); strings.HasSuffix(u.suffix, "iB") && n >= unit && n%unit == 0 {
			return fmt.Sprintf("%d%s", n/unit, u.suffix)
		}
	}
	return fmt.Sprint(n)
}

var sizeUnits = []struct {
	suffix string
	bytes  float64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30},
	{"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"B", 1},
}

// size is a number of bytes, as [ParseSize] reads it.
func (s *exprContext) size(a *hcl.Attribute) (int64, bool) {
	text, ok := s.text(a)
	if !ok {
		return 0, false
	}
	if bytes, ok := ParseSize(text); ok {
		return bytes, true
	}
	s.diags.Add(RuleValue, a.Expr.Range(), "Not a size",
		"%q must be a number of bytes, or one with a unit, such as \"64KiB\", \"256MiB\" or \"1GB\"; %q is not.", a.Name, text)
	return 0, false
}

// misfit explains why a value cannot be converted: what it is, or which part of it is
// wrong.
func misfit(v cty.Value, err error) string {
	if fault := (cty.PathError{}); errors.As(err, &fault) && len(fault.Path) > 0 {
		return ": " + conversionError(err)
	}
	if v.IsNull() {
		return ", and this is null"
	}
	switch v.Type() {
	case cty.String:
		return ", and this is a string"
	case cty.Number:
		return ", and this is a number"
	case cty.Bool:
		return ", and this is a bool"
	case pluginType:
		return ", and this is a plugin"
	}
	return ", and this is " + kindOf(v)
}

// decodeJSON is [ctyjson.Decode] with a budget of its own.
func decodeJSON(src []byte) (cty.Value, error) { return ctyjson.Decode(src, budget.New()) }

// encodeJSON is [ctyjson.Encode] with a budget of its own.
func encodeJSON(v cty.Value) (json.RawMessage, error) { return ctyjson.Encode(v, budget.New()) }

func keys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
