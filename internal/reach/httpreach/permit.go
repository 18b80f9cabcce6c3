package httpreach

import (
	"fmt"
	"slices"
	"strings"

	"github.com/flowhost/flowhost/internal/httprule"
	"github.com/flowhost/flowhost/run/access"
)

// permit is what a policy allows through one connection or the http grant.
type permit struct {
	name      string           // of the connection; "" for the grant
	base      *httprule.Target // of the connection
	tokenURL  *httprule.Target // of its credentials; nil: none
	author    []httprule.Rule
	bounded   bool // by an allow block of the operator, which says more than the connection's name
	operator  []httprule.Rule
	block     string // the operator's block, in faults
	redirects int
	maxBody   int64
	guard     guard
}

// newPermit refuses what is not granted at all.
func newPermit(policy *access.Policy, connection *access.Connection, name string) (*permit, error) {
	switch {
	case connection != nil && connection.Name != name:
		return nil, invalid("the head of the request states its connection in several ways: write the member connection once")
	case name == "":
		return grantPermit(policy)
	}
	if fault := checkName(policy, name); fault != nil {
		return nil, fault
	}
	if connection == nil {
		return nil, &access.Fault{
			Code: access.CodeDenied, Message: "connection " + quoted(name) + " refused: no connection of that name is deployed: declare it and deploy",
			Target: name, Rule: "not declared", Retryable: true,
		}
	}
	if connection.HTTP == nil {
		return nil, invalid("connection %s is of type %s, not http", name, connection.Type)
	}
	return connectionPermit(policy, connection)
}

// checkName needs a connection's name in the grant, and in the operator's block if there is
// one.
func checkName(policy *access.Policy, name string) error {
	if !slices.Contains(policy.Grants.Connections, name) {
		return &access.Fault{
			Code: access.CodeDenied, Message: "connection " + quoted(name) + " refused: the task's grant does not name it",
			Target: name, Rule: "not granted", Add: fmt.Sprintf("connections = [connection.%s]", name),
		}
	}
	if policy.Allow != nil && !access.Names(policy.Allow.Connections, name) {
		return &access.Fault{
			Code: access.CodeDenied, Message: "connection " + quoted(name) + " refused: " + blockOf(policy.Allow) + " does not name it",
			Target: name, Rule: blockOf(policy.Allow), Add: fmt.Sprintf("connections = [%q]", name),
		}
	}
	return nil
}

// grantPermit is the permit of the http grant. Without a grant it has no rule, so that the
// fault names the target.
func grantPermit(policy *access.Policy) (*permit, error) {
	p := &permit{}
	grant := policy.Grants.HTTP
	if grant == nil {
		grant = &access.HTTPGrant{}
	}
	var err error
	if p.author, err = parseRules(grant.Allow, httprule.Parse); err != nil {
		return nil, err
	}
	p.redirects, p.maxBody = grant.Redirects, bodyBound(grant.MaxBody)
	p.guard.missing = "private needs it in the task's grant and in the operator's allow block"
	if policy.Allow != nil {
		p.bounded, p.block = true, blockOf(policy.Allow)
		allow := policy.Allow.HTTP
		if allow == nil {
			allow = &access.HTTPGrant{}
		}
		if p.operator, err = parseRules(allow.Allow, httprule.Parse); err != nil {
			return nil, err
		}
		p.redirects, p.maxBody = min(p.redirects, allow.Redirects), min(p.maxBody, bodyBound(allow.MaxBody))
		p.guard.private = both(grant.Private, allow.Private)
	}
	p.redirects = min(p.redirects, access.MaxRedirects)
	return p, nil
}

func connectionPermit(policy *access.Policy, connection *access.Connection) (*permit, error) {
	http := connection.HTTP
	p := &permit{
		name:      connection.Name,
		redirects: min(http.Redirects, access.MaxRedirects),
		maxBody:   bodyBound(http.MaxBody),
	}
	var err error
	if p.base, err = httprule.ParseBase(http.BaseURL); err != nil {
		return nil, invalid("connection %s is wrong: %v", p.name, err)
	}
	rules, err := parseRules(http.Allow, httprule.ParsePath)
	if err != nil {
		return nil, err
	}
	for _, r := range rules {
		p.author = append(p.author, r.Below(p.base))
	}
	if http.Auth != nil && http.Auth.Kind == access.AuthOAuth2 {
		if p.tokenURL, err = httprule.ParseTarget(http.Auth.TokenURL); err != nil {
			return nil, invalid("connection %s is wrong: its token_url: %v", p.name, err)
		}
	}
	p.guard = connectionGuard(policy, connection, p)
	return p, nil
}

func connectionGuard(policy *access.Policy, connection *access.Connection, p *permit) guard {
	switch {
	case connection.Operator && len(connection.Private) == 0:
		g := guard{
			own:     []string{hostPort(p.base.Host, p.base.Port)},
			missing: "private needs it in the connection " + p.name,
		}
		if p.tokenURL != nil {
			g.own = append(g.own, hostPort(p.tokenURL.Host, p.tokenURL.Port))
		}
		return g
	case connection.Operator:
		return guard{private: addresses(connection.Private), missing: "private needs it in the connection " + p.name}
	}
	g := guard{missing: "private needs it in the connection " + p.name + " and in the operator's allow block"}
	if policy.Allow != nil {
		g.private = both(connection.Private, policy.Allow.Private)
	}
	return g
}

func bodyBound(bytes int64) int64 {
	if bytes <= 0 {
		return access.DefaultBody
	}
	return min(bytes, access.MaxBody)
}

func parseRules(texts []string, parse func(string) (httprule.Rule, error)) ([]httprule.Rule, error) {
	rules := make([]httprule.Rule, 0, len(texts))
	for _, text := range texts {
		r, err := parse(text)
		if err != nil {
			return nil, invalid("the policy is wrong: %v", err)
		}
		rules = append(rules, r)
	}
	return rules, nil
}

func blockOf(allow *access.Allow) string {
	text := fmt.Sprintf("the operator's allow %q", allow.Pattern)
	if allow.From != "" {
		text += " (" + allow.From + ")"
	}
	return text
}

// target is the canonical form of what a guest asks for.
func (p *permit) target(raw string) (*httprule.Target, error) {
	if p.base != nil {
		return p.base.Join(raw)
	}
	return httprule.ParseTarget(raw)
}

// check decides on a request or on a hop of it, before anything is looked up.
func (p *permit) check(method string, t *httprule.Target) error {
	if p.base != nil && !isBelow(p.base, t) {
		return &access.Fault{
			Code: access.CodeDenied, Message: describe(method, t) + " refused: it is not below the base URL of connection " + p.name,
			Target: describe(method, t), Rule: "base URL",
		}
	}
	if !anyMatches(p.author, method, t) {
		line, where := httprule.Exact(method, t).String(), "the task's http grant"
		if p.base != nil {
			line, where = httprule.ExactPath(method, p.base, t).String(), "connection "+p.name
		}
		return ruleFault(method, t, line, where, "no rule matches")
	}
	if p.bounded && !anyMatches(p.operator, method, t) {
		return ruleFault(method, t, httprule.Exact(method, t).String(), p.block, p.block)
	}
	return p.guard.checkLiteral(hostPort(t.Host, t.Port))
}

// isBelow reports whether a target is below a base URL.
func isBelow(base, t *httprule.Target) bool {
	return t.SameOrigin(base) && strings.HasPrefix(t.Path, strings.TrimSuffix(base.Path, "/")+"/")
}

func anyMatches(rules []httprule.Rule, method string, t *httprule.Target) bool {
	return slices.ContainsFunc(rules, func(r httprule.Rule) bool { return r.Match(method, t) })
}

func ruleFault(method string, t *httprule.Target, line, where, rule string) *access.Fault {
	return &access.Fault{
		Code:    access.CodeDenied,
		Message: fmt.Sprintf("%s refused: no rule of %s matches it", describe(method, t), where),
		Target:  describe(method, t),
		Rule:    rule,
		Add:     fmt.Sprintf("allow = [%q]", line),
	}
}
