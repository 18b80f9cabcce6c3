package flows

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/flowhost/flowhost/flows/internal/syntax"
)

// Limit bounds the attempts of all tasks that refer to it, over all flows of its
// directory and all their runs. At least one of its bounds is set.
type Limit struct {
	Name        string    // with the module's prefix, "billing/api"
	Concurrency int       // attempts under way at once; 0 for no such bound
	Rate        Rate      // of attempts that start; the zero value for no such bound
	Range       hcl.Range // of the block's header
}

// Rate is how many may start in any time of a length.
type Rate struct {
	Count int // 1 to MaxRateCount
	Per   time.Duration
}

// Bounds of rates. Each start that counts is remembered, and a restart knows those
// of runs that are still open.
const (
	MaxRateCount = 10_000
	minRateTime  = time.Millisecond
	maxRateTime  = 24 * time.Hour
)

// String is the rate as it is written, "10/s".
func (r Rate) String() string {
	for unit, d := range rateUnits {
		if d == r.Per {
			return fmt.Sprintf("%d/%s", r.Count, unit)
		}
	}
	per := r.Per.String() // "15m0s"
	if strings.HasSuffix(per, "m0s") {
		per = strings.TrimSuffix(per, "0s")
	}
	if strings.HasSuffix(per, "h0m") {
		per = strings.TrimSuffix(per, "0m")
	}
	return fmt.Sprintf("%d/%s", r.Count, per)
}

var rateUnits = map[string]time.Duration{"s": time.Second, "m": time.Minute, "h": time.Hour}

// declaredLimit is a limit block before and after it is decoded.
type declaredLimit struct {
	*Limit
	block *hcl.Block
}

func (m *module) declareLimit(b *hcl.Block) {
	name, at, ok := m.label(b)
	if !ok {
		return
	}
	if first := m.limitBlocks[name]; first != nil {
		m.diags.Duplicate("limit", name, at, first.Range)
		return
	}
	m.limitBlocks[name] = &declaredLimit{&Limit{Name: m.src.prefix + name, Range: b.DefRange}, b}
}

func (m *module) decodeLimits() {
	for _, name := range keys(m.limitBlocks) {
		m.decodeLimit(m.limitBlocks[name])
	}
}

func (m *module) decodeLimit(l *declaredLimit) {
	from := m.diags.Count()
	s, c := m.exprContext(nil).decodeAt(l.block, limitSchema)
	if n, ok := s.whole(c.Arg("concurrency"), 1, math.MaxInt32); ok {
		l.Concurrency = int(n)
	}
	l.Rate = s.rate(c.Arg("rate"))
	if l.Concurrency == 0 && l.Rate.Count == 0 && !m.diags.Failed(from) {
		m.diags.Add(RuleMissing, l.Range, "Limit without a bound", "A limit block needs \"concurrency\", \"rate\", or both.")
	}
	m.publishLimit(l.Limit)
}

// publishLimit puts a limit into the set.
func (l *loader) publishLimit(limit *Limit) {
	if first := l.set.limits[limit.Name]; first != nil {
		l.diags.Duplicate("limit", limit.Name, limit.Range, first.Range)
		return
	}
	l.set.limits[limit.Name] = limit
	l.set.Limits = append(l.set.Limits, limit)
}

// rate reads COUNT/UNIT.
func (s *exprContext) rate(a *hcl.Attribute) Rate {
	text, ok := s.text(a)
	if !ok {
		return Rate{}
	}
	r, err := parseRate(text)
	if err != nil {
		s.diags.Add(RuleValue, a.Expr.Range(), "Not a rate", "%q must be COUNT/UNIT, such as \"10/s\", \"600/m\" or \"100/15m\"; %s.", a.Name, err)
	}
	return r
}

func parseRate(text string) (Rate, error) {
	count, unit, ok := strings.Cut(text, "/")
	if !ok {
		return Rate{}, fmt.Errorf("%q is not", text)
	}
	n, err := strconv.Atoi(count)
	if err != nil || n < 1 || n > MaxRateCount || count[0] == '+' {
		return Rate{}, fmt.Errorf("the count must be an integer, from 1 to %d, and %q is not", MaxRateCount, count)
	}
	per, known := rateUnits[unit]
	if !known {
		if per, err = time.ParseDuration(unit); err != nil {
			return Rate{}, fmt.Errorf("the unit must be s, m, h or a duration, and %q is not", unit)
		}
	}
	if per < minRateTime || per > maxRateTime {
		return Rate{}, fmt.Errorf("the time must be from 1ms to 24h, and %q is not", unit)
	}
	return Rate{Count: n, Per: per}, nil
}

// limitedBy reads a reference to a limit, or a list of them. The limits are sorted
// by name.
func (s *exprContext) limitedBy(a *hcl.Attribute) []*Limit {
	if a == nil {
		return nil
	}
	items := []hcl.Expression{a.Expr}
	if list, diags := hcl.ExprList(a.Expr); !diags.HasErrors() {
		items = list
	}
	var out []*Limit
	for _, item := range items {
		switch l := s.limitOf(item); {
		case l == nil:
		case slices.Contains(out, l):
			s.diags.Add(RuleDuplicate, item.Range(), "Duplicate limit", "The task has this limit already: an attempt takes one slot of it. Leave the reference out.")
		default:
			out = append(out, l)
		}
	}
	slices.SortFunc(out, func(a, b *Limit) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// limitOf finds the limit that is referred to; nil when that has been reported as
// wrong.
func (s *exprContext) limitOf(item hcl.Expression) *Limit {
	t, diags := hcl.AbsTraversalForExpr(item)
	name, at, ok := syntax.Step(t, 1)
	if diags.HasErrors() || len(t) != 2 || t.RootName() != "limit" || !ok {
		s.diags.Add(RuleReference, item.Range(), "A reference to a limit is required", "Write limit = limit.NAME, or limit = [limit.NAME, …] for several.")
		return nil
	}
	if l := s.module.limitBlocks[name]; l != nil {
		return l.Limit
	}
	b := &binding{exprContext: s, x: new(expression)}
	b.unknownName(rootWord("limit"), name, at)
	return nil
}

// limitsOf are the limits that a flow's tasks have, sorted by name.
func limitsOf(tasks []*Task) []*Limit {
	var all []*Limit
	for _, t := range tasks {
		all = append(all, t.LimitedBy...)
	}
	slices.SortFunc(all, func(a, b *Limit) int { return strings.Compare(a.Name, b.Name) })
	return slices.Compact(all)
}
