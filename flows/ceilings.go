package flows

import (
	"fmt"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/flowhost/flowhost/run"
)

// Ceilings are an operator's bounds on what flows may state for one call. A zero
// field leaves the language's own bound, [run.MaxMemory] and so on. They hold for
// flows that are loaded, not for those of runs that were accepted before.
type Ceilings struct {
	run.Limits
	Timeout time.Duration // of an attempt
	From    string        // where the settings are, for diagnostics: "flowhost.hcl"
}

// Bounds of numbers that have no meaning beyond them.
const (
	maxAttempts = 100_000
	maxDuration = maxWait
)

// withinSize refuses a limit above the language's bound, or above the operator's.
func (s *exprContext) withinSize(a *hcl.Attribute, most, ceiling int64) (int64, bool) {
	n, ok := s.size(a)
	if !ok || s.module.restored != nil {
		return n, ok
	}
	switch {
	case n > most:
		s.diags.Add(RuleValue, a.Expr.Range(), "Limit too high", "%q is %s at most.", a.Name, FormatSize(most))
	case ceiling > 0 && n > ceiling:
		s.above(a, FormatSize(ceiling))
	default:
		return n, true
	}
	return 0, false
}

// above reports what is above the operator's bound.
func (s *exprContext) above(a *hcl.Attribute, ceiling string) {
	s.diags.Add(RuleValue, a.Expr.Range(), "Limit above the operator's", "The operator allows %s for %q at most: max_%s in %s.", ceiling, a.Name, a.Name, s.module.options.Ceilings.From)
}

// limits reads a limits block.
func (s *exprContext) limits(b *hcl.Block) run.Limits {
	s, c := s.decodeAt(b, limitsSchema)
	var l run.Limits
	ceilings := s.module.options.Ceilings
	l.Memory, _ = s.withinSize(c.Arg("memory"), run.MaxMemory, ceilings.Memory)
	l.Output, _ = s.withinSize(c.Arg("output"), run.MaxOutput, ceilings.Output)
	l.Log, _ = s.withinSize(c.Arg("log"), run.MaxLog, ceilings.Log)
	l.Fuel = s.fuel(c.Arg("fuel"))
	return l
}

func (s *exprContext) fuel(a *hcl.Attribute) int64 {
	n, _ := s.whole(a, 1, run.MaxFuel)
	if ceiling := s.module.options.Ceilings.Fuel; ceiling > 0 && n > ceiling && s.module.restored == nil {
		s.above(a, fmt.Sprint(ceiling))
	}
	return n
}

// attemptTimeout checks the timeout of attempts.
func (s *exprContext) attemptTimeout(a *hcl.Attribute, timeout time.Duration) {
	if ceiling := s.module.options.Ceilings.Timeout; a != nil && ceiling > 0 && timeout > ceiling && s.module.restored == nil {
		s.above(a, ceiling.String())
	}
}
