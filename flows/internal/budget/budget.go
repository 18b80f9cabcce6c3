package budget

import (
	"errors"
	"math/bits"
	"reflect"
	"strings"
	"sync/atomic"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/flowhost/flowhost/flows/internal/ctyjson"
	"github.com/flowhost/flowhost/flows/internal/diag"
)

// Expressions can ask for more than a machine has: loops in loops, locals that
// double the one before, functions whose work is the square of what they are given.
// hcl evaluates without bounds, so what computes is put into nodes that count, and
// work is charged before it is done. Charges depend on values alone, never on the
// clock: an evaluation has the same outcome on every machine.

// Max is what one evaluation in a run may cost. A unit is about a microsecond
// of work or some 100 bytes; TestWorstExpressions holds the charges to that.
const Max = 150_000

// Budget is what an evaluation may still cost.
type Budget struct {
	left   int
	cause  error // why nothing is left, when that is not the cost
	unused int   // of what was left then
	given  int   // of a budget apart: what there was

	interrupted *atomic.Bool // ends the evaluation when it is set; nil: nothing does
}

// New is the budget of one evaluation.
func New() *Budget { return Of(Max) }

// Of is a budget of some units.
func Of(units int) *Budget { return &Budget{left: units} }

// Interruptible lets an evaluation end as soon as the flag is set, at the next charge.
func (m *Budget) Interruptible(flag *atomic.Bool) { m.interrupted = flag }

// Left is what is left.
func (m *Budget) Left() int { return m.left }

// Grant adds units.
func (m *Budget) Grant(units int) { m.left += units }

// Reset makes it the budget of another evaluation.
func (m *Budget) Reset() { m.left = Max }

func (m *Budget) Spent() bool { return m.left <= 0 }

// charge takes the cost of work that is about to be done.
func (m *Budget) charge(cost int) {
	if m.interrupted != nil && m.interrupted.Load() {
		m.fail(ErrInterrupted)
		return
	}
	if cost >= m.left || cost < 0 {
		m.left = 0
		return
	}
	m.left -= cost
}

// Charge takes the cost of work that is about to be done. It returns an error when
// nothing is left: the work must not be done.
func (m *Budget) Charge(cost int) error {
	m.charge(cost)
	return m.Err()
}

// fail ends the evaluation for another reason than its cost.
func (m *Budget) fail(cause error) {
	if !m.Spent() {
		m.left, m.cause, m.unused = 0, cause, m.left
	}
}

// ErrInterrupted is why an evaluation has ended that nobody waits for.
var ErrInterrupted = errors.New("the evaluation was interrupted")

// ErrCost is why an evaluation has ended that costs too much.
var ErrCost = errors.New("it is too much to compute: what expressions compute is bounded, loops within loops multiply, and locals that hold others twice double; let a task compute this")

// Err is why nothing is left, nil while something is.
func (m *Budget) Err() error {
	switch {
	case !m.Spent():
		return nil
	case m.cause != nil:
		return m.cause
	}
	return ErrCost
}

// take charges for a value that was made or is about to be copied.
func (m *Budget) take(v cty.Value) {
	h := m.weigh(v)
	m.charge(1 + h.parts/4 + h.text())
}

// heft is what of a value decides how much work there is with it.
type heft struct {
	parts int // values within it
	deep  int // the sum of the depths of these: what a function costs that looks at all of each part again for each of its parts
	ascii int // bytes of strings
	wide  int // bytes of strings that are not ASCII, which are brought to their normal form again and again
	sorts int // comparisons of going once through each set of strings or numbers
}

// text is what making a copy of all strings costs.
func (h heft) text() int { return h.ascii/64 + h.wide/12 }

// graphemes is what finding the characters of all strings costs.
func (h heft) graphemes() int { return h.ascii/12 + h.wide/3 }

// Deep is the sum of the depths of a value's parts.
func (m *Budget) Deep(v cty.Value) int { return m.weigh(v).deep }

func (h heft) bytes() int { return h.ascii + h.wide }

// weigh weighs a value, until it has more parts than may be charged for.
func (m *Budget) weigh(v cty.Value) heft {
	var h heft
	m.weighInto(&h, v, 1)
	return h
}

func (m *Budget) weighInto(h *heft, v cty.Value, depth int) {
	if v.IsMarked() {
		v, _ = v.Unmark()
	}
	if m.Spent() || v == cty.NilVal || !v.IsKnown() || v.IsNull() {
		return
	}
	switch t := v.Type(); {
	case t == cty.String:
		h.add(v.AsString())
	case t == cty.Number:
		if ctyjson.OutOfRange(v.AsBigFloat()) && !v.AsBigFloat().IsInf() {
			m.fail(ctyjson.ErrNumberRange)
		}
	case t.IsSetType():
		m.weighSet(h, v, depth)
	case t.IsTupleType() || t.IsListType():
		m.weighItems(h, v, depth)
	case t.IsObjectType():
		for name := range t.AttributeTypes() { // an iterator would sort them
			if m.weighPart(h, name, v.GetAttr(name), depth) {
				return
			}
		}
	case t.IsMapType():
		for name, item := range v.AsValueMap() {
			if m.weighPart(h, name, item, depth) {
				return
			}
		}
	}
}

// weighSet charges for sorting, which cty does for each iteration: strings and numbers as
// they are, other elements by their checksums.
func (m *Budget) weighSet(h *heft, v cty.Value, depth int) {
	n := v.LengthInt()
	rounds := bits.Len(uint(n))
	if v.Type().ElementType().IsPrimitiveType() {
		h.sorts += n * rounds
		if m.charge(n + n*rounds/2); !m.Spent() {
			m.weighItems(h, v, depth)
		}
		return
	}
	if m.charge(n * rounds); m.Spent() {
		return
	}
	before := *h
	m.weighItems(h, v, depth)
	m.charge(((h.parts - before.parts) + (h.bytes()-before.bytes())/32) * rounds / 2)
}

func (m *Budget) weighItems(h *heft, v cty.Value, depth int) {
	for it := v.ElementIterator(); it.Next(); {
		_, item := it.Element()
		if m.weighPart(h, "", item, depth) {
			return
		}
	}
}

// weighPart weighs a part, those with a name twice, and reports whether it is too much.
func (m *Budget) weighPart(h *heft, name string, part cty.Value, depth int) bool {
	h.parts++
	h.deep += depth
	if name != "" {
		h.parts++
		h.ascii += len(name)
	}
	if h.parts > 4*m.left {
		m.charge(m.left)
	}
	if !m.Spent() {
		m.weighInto(h, part, depth+1)
	}
	return m.Spent()
}

func (h *heft) add(text string) {
	wide := 0
	for i := range len(text) {
		wide += int(text[i] >> 7)
	}
	h.wide += wide
	h.ascii += len(text) - wide
}

// pairs is what cty's way to bring a value's parts to one type costs: it compares
// each element of a list with each.
func (m *Budget) pairs(v cty.Value) int {
	v, _ = v.Unmark()
	switch {
	case m.Spent() || !v.IsKnown() || v.IsNull():
		return 0
	case v.Type() == cty.String:
		n := leadingDigits(v.AsString()) // it may be read as a number
		return n / 50 * n / 50
	case v.Type() == cty.Number:
		return ctyjson.DigitsCost(v.AsBigFloat())
	case !v.CanIterateElements():
		return 0
	}
	n := v.LengthInt()
	cost := n + n*n/50
	for it := v.ElementIterator(); cost < m.left && it.Next(); {
		_, item := it.Element()
		cost += 1 + 2*m.pairs(item)
	}
	return cost
}

// collisions is what making a set costs: cty finds equal elements by a checksum of
// 32 bits, and compares all that have the same.
func (m *Budget) collisions(items []cty.Value) int {
	cost, buckets, seen := 0, make(map[int]int, len(items)), map[string]bool{}
	for _, item := range items {
		if item.ContainsMarked() {
			continue // sets have no marks within them: cty takes them off
		}
		if name, ok := keyOf(item); ok {
			if cost++; seen[name] {
				continue // it is compared with its equal only
			}
			seen[name] = true
		}
		h := m.weigh(item)
		cost += 2 + 2*h.deep + h.bytes()/16 + h.sorts + m.digits(item)/3
		if m.left <= cost {
			return cost
		}
		sum := item.Hash()
		cost += buckets[sum] * (1 + h.deep + h.bytes()/1000 + m.fractions(item))
		buckets[sum]++
	}
	return cost
}

// keyOf identifies strings and numbers.
func keyOf(v cty.Value) (string, bool) {
	switch {
	case v.IsMarked() || !v.IsKnown() || v.IsNull():
		return "", false
	case v.Type() == cty.String:
		return v.AsString(), true
	case v.Type() == cty.Number:
		return v.AsBigFloat().Text('p', 0), true
	}
	return "", false
}

// digits is what writing out the numbers in a value costs cty.
func (m *Budget) digits(v cty.Value) int {
	v, _ = v.Unmark()
	switch {
	case !v.IsKnown() || v.IsNull():
		return 0
	case v.Type() == cty.Number:
		return ctyjson.DigitsCost(v.AsBigFloat())
	case !v.CanIterateElements():
		return 0
	}
	cost := 0
	for it := v.ElementIterator(); cost < m.left && it.Next(); {
		_, item := it.Element()
		cost += m.digits(item)
	}
	return cost
}

// fractions is what comparing the numbers in a value costs cty, which writes out those
// that are not whole.
func (m *Budget) fractions(v cty.Value) int {
	v, _ = v.Unmark()
	switch {
	case !v.IsKnown() || v.IsNull():
		return 0
	case v.Type() == cty.Number && !v.AsBigFloat().IsInt():
		return ctyjson.DigitsCost(v.AsBigFloat())
	case !v.CanIterateElements():
		return 0
	}
	cost := 0
	for it := v.ElementIterator(); cost < m.left && it.Next(); {
		_, item := it.Element()
		cost += m.fractions(item)
	}
	return cost
}

func leadingDigits(s string) int { return len(s) - len(strings.TrimLeft(s, "0123456789")) }

// ReadNumber reads a string where a number is wanted. One that is none is left to
// whoever reports that.
func (m *Budget) ReadNumber(v cty.Value) cty.Value {
	text, marks := v.Unmark()
	if text.Type() != cty.String || !text.IsKnown() || text.IsNull() {
		return v
	}
	if len(text.AsString()) > ctyjson.MaxDigits {
		m.fail(ctyjson.ErrDigits)
		return v
	}
	n, err := convert.Convert(text, cty.Number)
	if err != nil {
		return v
	}
	if ctyjson.OutOfRange(n.AsBigFloat()) {
		m.fail(ctyjson.ErrNumberRange)
	}
	return n.WithMarks(marks)
}

// budgetName is no name that an expression can have.
const budgetName = " meter"

var budgetType = cty.Capsule("meter", reflect.TypeFor[Budget]())

func budgetOf(ctx *hcl.EvalContext) *Budget {
	for ; ctx != nil; ctx = ctx.Parent() {
		if v, ok := ctx.Variables[budgetName]; ok {
			return v.EncapsulatedValue().(*Budget)
		}
	}
	return New()
}

// Apart is a budget for a part of what is left, of [Max] at most: a value that fails
// for another reason than its cost leaves the rest for others.
func (m *Budget) Apart() *Budget {
	given := min(m.left, Max)
	return &Budget{left: given, given: given, interrupted: m.interrupted}
}

// Absorb takes what was used of a budget apart.
func (m *Budget) Absorb(own *Budget) { m.charge(own.given - own.left - own.unused) }

// Eval evaluates an expression and charges for it.
func (m *Budget) Eval(e hcl.Expression, ctx *hcl.EvalContext) (cty.Value, hcl.Diagnostics) {
	own := m.Apart()
	child := ctx.NewChild()
	child.Variables = map[string]cty.Value{budgetName: cty.CapsuleVal(budgetType, own)}
	v, diags := e.Value(child)
	own.take(v)
	m.Absorb(own)
	if !own.Spent() {
		return v, diags
	}
	return cty.DynamicVal, own.exhausted(e.Range())
}

// exhausted reports why nothing is left.
func (m *Budget) exhausted(at hcl.Range) hcl.Diagnostics {
	if m.cause != nil {
		return hcl.Diagnostics{{Severity: hcl.DiagError, Summary: "Value cannot be used", Subject: &at, Detail: diag.Sentence(m.cause.Error()) + "."}}
	}
	return hcl.Diagnostics{{
		Severity: hcl.DiagError, Summary: "Too much to compute", Subject: &at,
		Detail: "What expressions compute is bounded, and here the bound is reached: loops within loops multiply, and locals that hold others twice double. Let a task compute this.",
	}}
}
