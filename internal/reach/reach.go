package reach

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/flowhost/flowhost/run/access"
)

// Driver performs the operations of some kinds.
type Driver interface {
	// Open begins an attempt. It reaches nothing yet.
	Open(a *Attempt) Session
}

// Session is an attempt at a driver. Do is called by several goroutines; it ends soon after
// ctx has ended. Close is called once, after all of them.
type Session interface {
	Do(ctx context.Context, op *access.Operation) access.Answer
	Close()
}

// Config is what operations need. Only Deployed is required.
type Config struct {
	Deployed access.Deployed
	Secrets  access.Secrets                  // nil: there are none
	Allow    func(flow string) *access.Allow // of the operator, now; nil: no allow block was written
	Drivers  map[string]Driver               // by the first word of kinds: "http", "sql"
}

// Reach opens attempts.
type Reach struct{ config Config }

// New makes a Reach.
func New(config Config) *Reach { return &Reach{config} }

// Attempt is what drivers know of an attempt.
type Attempt struct {
	access.Caller
	Grants   access.Grants            // that are recorded for it
	Mentions func(digest string) bool // whether the attempt's input or config has it

	reach *Reach
	mu    sync.Mutex
	open  map[string]Session // by the first word of kinds
}

// Open begins an attempt with the grants that are recorded for it.
func (r *Reach) Open(caller access.Caller, grants access.Grants, mentions func(digest string) bool) *Attempt {
	a := &Attempt{Caller: caller, Grants: grants, Mentions: mentions, reach: r}
	if caller.Traceparent == "" {
		a.Traceparent = traceparent(&caller)
	}
	return a
}

// Policy is what decides on an operation that begins now: the operator may have changed the
// settings since the attempt began.
func (a *Attempt) Policy() access.Policy {
	p := access.Policy{Grants: a.Grants}
	if a.reach.config.Allow != nil {
		p.Allow = a.reach.config.Allow(a.Flow)
	}
	return p
}

// Do performs an operation.
func (a *Attempt) Do(ctx context.Context, op *access.Operation) access.Answer {
	word, _, _ := strings.Cut(op.Kind, ".")
	if word == access.KindSecret {
		return a.secret(ctx, op)
	}
	s := a.session(word)
	if s == nil {
		return denied("unknown kind", op.Kind, "", "there is no operation %q", op.Kind)
	}
	return s.Do(ctx, op)
}

// session is the attempt's at a driver, nil without one.
func (a *Attempt) session(word string) Session {
	a.mu.Lock()
	defer a.mu.Unlock()
	if s := a.open[word]; s != nil {
		return s
	}
	driver := a.reach.config.Drivers[word]
	if driver == nil {
		return nil
	}
	if a.open == nil {
		a.open = map[string]Session{}
	}
	a.open[word] = driver.Open(a)
	return a.open[word]
}

// Close ends the attempt: transactions are rolled back, what was not committed is removed.
func (a *Attempt) Close() {
	for _, s := range a.open {
		s.Close()
	}
}

// Connection is a connection that the attempt may use, as it is deployed now.
func (a *Attempt) Connection(name string, types ...string) (*access.Connection, *access.Fault) {
	policy := a.Policy()
	if !slices.Contains(policy.Grants.Connections, name) {
		return nil, denied("not granted", name, fmt.Sprintf("grant { connections = [connection.%s] }", name), "connection %q is not granted to the task", name).Fault
	}
	if allow := policy.Allow; allow != nil && !access.Names(allow.Connections, name) {
		return nil, denied(access.RuleOperator, name, fmt.Sprintf("connections = [%q], in allow %q { … } of the settings", name, allow.Pattern), "the operator does not allow connection %q to flow %s", name, a.Flow).Fault
	}
	c := a.reach.config.Deployed.Connection(a.Flow, name)
	if c == nil {
		f := denied("missing", name, "", "connection %q is not declared any more", name).Fault
		f.Retryable = true
		return nil, f
	}
	if f := a.sources(policy.Allow, c.Secrets()); f != nil {
		return nil, f
	}
	if !c.Operator && len(c.Private) > 0 {
		own := *c // with the addresses that have both keys
		own.Private = nil
		for _, address := range c.Private {
			if allow := policy.Allow; allow != nil && slices.Contains(allow.Private, address) {
				own.Private = append(own.Private, address)
			}
		}
		c = &own
	}
	if !slices.Contains(types, c.Type) {
		return nil, &access.Fault{Code: access.CodeInvalid, Target: name, Message: fmt.Sprintf("connection %q is of type %s, not %s", name, c.Type, strings.Join(types, " or "))}
	}
	return c, nil
}

// sources refuses secrets from where the operator allows none. It is decided for each
// operation, although the host may have the values, or a connection that it opened with them.
func (a *Attempt) sources(allow *access.Allow, names []string) *access.Fault {
	for _, name := range names {
		s := a.reach.config.Deployed.Secret(a.Flow, name)
		if s == nil {
			continue // which is reported where it is read
		}
		if x := allow.SourceExcess(s); x != nil {
			return allow.SourceFault(a.Flow, name, x)
		}
	}
	return nil
}

// denied is the answer to an operation that the policy refuses.
func denied(rule, target, add, format string, args ...any) access.Answer {
	return access.Answer{Fault: &access.Fault{Code: access.CodeDenied, Rule: rule, Target: target, Add: add, Message: fmt.Sprintf(format, args...)}}
}

// traceparent is the W3C trace context of an attempt: all of a run are of one trace.
func traceparent(c *access.Caller) string {
	trace := sha256.Sum256([]byte("flowhost run " + c.Run))
	span := sha256.Sum256(fmt.Appendf(nil, "%s %s %s %d", c.Run, c.Task, c.Key, c.Attempt))
	return "00-" + hex.EncodeToString(trace[:16]) + "-" + hex.EncodeToString(span[:8]) + "-01"
}
