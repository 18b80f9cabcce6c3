package flows

import (
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/flowhost/flowhost/flows/internal/diag"
	"github.com/flowhost/flowhost/flows/internal/lang"
	"github.com/flowhost/flowhost/run"
)

// policy is what a defaults block sets for tasks, and what a task makes of it.
type policy struct {
	timeout time.Duration
	retry   run.RetryPolicy
	again   *expression // nil: the failure's Retryable decides
}

func (m *module) decodeDefaults(blocks []*hcl.Block) {
	for i, b := range blocks {
		if i > 0 {
			m.diags.Add(RuleDuplicate, b.DefRange, "Duplicate block", "The module has its defaults already, at %s. Put the two together.", diag.Place(blocks[0].DefRange))
			continue
		}
		m.defaults = m.exprContext(nil).defaultsOf(b, policy{})
	}
}

func (s *exprContext) defaultsOf(b *hcl.Block, inherited policy) policy {
	s, c := s.decodeAt(b, defaultsSchema)
	s.shared = true
	p := s.policy(c, inherited)
	s.attemptTimeout(c.Arg("timeout"), p.timeout)
	return p
}

// policy reads timeout, retries and retry over what is inherited.
func (s *exprContext) policy(c *lang.Content, inherited policy) policy {
	p := inherited
	if d, ok := s.duration(c.Arg("timeout")); ok {
		p.timeout = d
	}
	retries, block := c.Arg("retries"), c.One("retry")
	if retries != nil && block != nil {
		s.diags.Add(RuleConflict, retries.NameRange, "retries and retry", "retries = n is the short form of retry { attempts = n + 1 }: keep one of the two.")
	}
	if n, ok := s.whole(retries, 0, maxAttempts-1); ok {
		p.retry.Attempts = int(n) + 1
	}
	if block != nil {
		s.retry(block, &p)
	}
	return p
}

func (s *exprContext) retry(b *hcl.Block, p *policy) {
	s, c := s.decodeAt(b, retrySchema)
	r := &p.retry
	if n, ok := s.whole(c.Arg("attempts"), 1, maxAttempts); ok {
		r.Attempts = int(n)
	}
	if word, ok := s.word(c.Arg("backoff")); ok {
		r.Backoff = run.Backoff(word)
	}
	if d, ok := s.duration(c.Arg("delay")); ok {
		r.Delay = d
	}
	if d, ok := s.duration(c.Arg("max")); ok {
		r.Max = d
	}
	if f, ok := s.share(c.Arg("jitter")); ok {
		r.Jitter = f
	}
	if x := s.condition(c.Arg("when")); x != nil {
		x.argument = "retry.when" // a task has another when
		p.again = x
	}
}

// over lays a task's limits over its plugin's.
func over(task, plugin run.Limits) run.Limits {
	if task.Memory == 0 {
		task.Memory = plugin.Memory
	}
	if task.Output == 0 {
		task.Output = plugin.Output
	}
	if task.Log == 0 {
		task.Log = plugin.Log
	}
	if task.Fuel == 0 {
		task.Fuel = plugin.Fuel
	}
	return task
}
