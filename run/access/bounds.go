package access

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// Excess is an entry of a grant that a bound does not include.
type Excess struct {
	Key   string // of the grant: "connections", "http", "private" for the address of a connection
	Entry string // what is not included: `connection "github"`
	Line  string // what the bound states to include it: `connections = ["github"]`
}

// Excess returns what the operator does not allow of a grant. The connections are those of the
// flow's files that the grant names. Without an allow block, a nil *Allow, a grant needs the
// operator only for what takes two keys: addresses that are not public, a real clock together
// with a network, and secrets that are handed to guests.
func (a *Allow) Excess(g *Grants, connections []*Connection) []Excess {
	bound := a
	if a == nil {
		bound = trusting(g, connections)
	}
	c := comparison{bound: bound}
	c.compare(g)
	for _, connection := range connections {
		c.private(bound.Private, connection.Private, "private", "", fmt.Sprintf(" of connection %q", connection.Name))
	}
	return c.found
}

// Excess returns what an inner grant has beyond this one.
func (g *Grants) Excess(inner *Grants) []Excess {
	c := comparison{bound: g.bound()}
	c.compare(inner)
	return c.found
}

// IncludesFiles reports whether a directory below that of the flow file may be granted so.
func (a *Allow) IncludesFiles(path string, mode Mode) bool {
	for directory, most := range a.Files {
		if below(directory, path) && most.Includes(mode) {
			return true
		}
	}
	return false
}

// bound is what a grant includes, as a bound on others.
func (g *Grants) bound() *Allow {
	return &Allow{
		Connections: g.Connections, HTTP: g.HTTP, KV: g.KV, Publish: g.Publish, Request: g.Request,
		Secrets: slices.Collect(maps.Values(g.Secrets)), Env: slices.Collect(maps.Keys(g.Env)),
		Clock: g.Clock, Random: g.Random, Artifacts: g.Artifacts,
	}
}

// trusting allows what a grant has, except for what takes two keys.
func trusting(g *Grants, connections []*Connection) *Allow {
	a := g.bound()
	a.Secrets = nil
	if g.HTTP != nil {
		public := *g.HTTP
		public.Private = nil
		a.HTTP = &public
	}
	if g.network(connections) {
		a.Clock = ""
	}
	return a
}

// network reports whether a grant reaches other machines. The connections are those that are
// known: what is not known may.
func (g *Grants) network(connections []*Connection) bool {
	local := 0
	for _, c := range connections {
		if c.Type == TypeSQLite {
			local++
		}
	}
	return g.HTTP != nil || len(g.Publish)+len(g.Request) > 0 || len(g.Connections) > local
}

// comparison collects what a bound does not include.
type comparison struct {
	bound *Allow
	found []Excess
}

func (c *comparison) add(key, entry, line string) {
	c.found = append(c.found, Excess{Key: key, Entry: entry, Line: line})
}

func (c *comparison) compare(g *Grants) {
	for _, name := range g.Connections {
		if !Names(c.bound.Connections, name) {
			c.add("connections", fmt.Sprintf("connection %q", name), fmt.Sprintf("connections = [%q]", name))
		}
	}
	c.http(g.HTTP)
	for _, bucket := range slices.Sorted(maps.Keys(g.KV)) {
		if mode := g.KV[bucket]; !c.bound.KV[bucket].Includes(mode) && !c.bound.KV["*"].Includes(mode) {
			c.add("kv", fmt.Sprintf("bucket %q as %q", bucket, mode), fmt.Sprintf("kv = { %q = %q }", bucket, mode))
		}
	}
	c.subjects("publish", "messages", c.bound.Publish, g.Publish)
	c.subjects("request", "requests", c.bound.Request, g.Request)
	for _, guest := range slices.Sorted(maps.Keys(g.Secrets)) {
		if name := g.Secrets[guest]; !Names(c.bound.Secrets, name) {
			c.add("secrets", fmt.Sprintf("secret %q, handed to the guest", name), fmt.Sprintf("secrets = [%q]", name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(g.Env)) {
		if !Names(c.bound.Env, name) {
			c.add("env", fmt.Sprintf("variable %q", name), fmt.Sprintf("env = [%q]", name))
		}
	}
	if g.Clock != "" && g.Clock != c.bound.Clock {
		c.add("clock", "the "+g.Clock+" clock", fmt.Sprintf("clock = %q", g.Clock))
	}
	if g.Random != "" && g.Random != c.bound.Random {
		c.add("random", g.Random+" random numbers", fmt.Sprintf("random = %q", g.Random))
	}
	if g.Artifacts && !c.bound.Artifacts {
		c.add("artifacts", "artifacts", "artifacts = true")
	}
}

func (c *comparison) http(g *HTTPGrant) {
	if g == nil {
		return
	}
	bound := cmp.Or(c.bound.HTTP, new(HTTPGrant))
	for _, rule := range g.Allow {
		if !RuleIncludes(bound.Allow, rule) {
			c.add("http", fmt.Sprintf("%q", rule), httpLine(fmt.Sprintf("allow = [%q]", rule)))
		}
	}
	c.private(bound.Private, g.Private, "http", "http", "")
	if g.Redirects > bound.Redirects {
		c.add("http", fmt.Sprintf("%d redirects", g.Redirects), httpLine(fmt.Sprintf("redirects = %d", g.Redirects)))
	}
	if body := g.Body(); body > bound.Body() {
		c.add("http", "responses of "+bodySize(body), httpLine(fmt.Sprintf("max_body = %q", bodySize(body))))
	}
}

func bodySize(n int64) string {
	if n%(1<<20) == 0 {
		return fmt.Sprintf("%dMiB", n>>20)
	}
	return fmt.Sprintf("%dB", n)
}

func httpLine(argument string) string { return "http { " + argument + " }" }

func (c *comparison) private(bound, addresses []string, key, block, of string) {
	for _, address := range addresses {
		if slices.Contains(bound, address) {
			continue
		}
		line := fmt.Sprintf("private = [%q]", address)
		if block != "" {
			line = httpLine(line)
		}
		c.add(key, fmt.Sprintf("the address %s%s, which is not public", address, of), line)
	}
}

func (c *comparison) subjects(key, what string, bound, subjects []string) {
	for _, subject := range subjects {
		if !slices.ContainsFunc(bound, func(outer string) bool { return SubjectIncludes(outer, subject) }) {
			c.add(key, fmt.Sprintf("%s to %q", what, subject), fmt.Sprintf("%s = [%q]", key, subject))
		}
	}
}

// Body is the size up to which a response is read.
func (g *HTTPGrant) Body() int64 { return cmp.Or(g.MaxBody, DefaultBody) }
