package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/run/access"
)

// Verbs of rights. Those by way of a connection are followed by "with connection.NAME".
const (
	mayRead      = "read" // a directory
	mayWrite     = "write"
	mayUse       = "use"     // a connection
	mayRequest   = "request" // by rules of HTTP
	mayReach     = "reach"   // addresses that are not public
	mayFollow    = "follow"
	mayReceive   = "receive"
	mayMail      = "mail"
	mayReadKeys  = "read keys of"
	mayWriteKeys = "write keys of"
	mayPublish   = "publish to"
	maySend      = "send requests to"
	mayGet       = "get the value of"
	mayUseSecret = "use secrets" // from a source
	maySee       = "see"
	mayStore     = "store"
)

// rights collects what a grant gives to a task.
type rights struct {
	task string
	via  string // " with connection.NAME", empty without one
	all  []api.Right
}

func (r *rights) add(right, to string) {
	r.all = append(r.all, api.Right{Task: r.task, Right: right + r.via, To: to})
}

func (r *rights) files(granted []run.FileGrant) {
	for _, g := range granted {
		r.add(mayRead, "./"+g.Path)
		if g.Write {
			r.add(mayWrite, "./"+g.Path)
		}
	}
}

func (r *rights) grants(g *access.Grants) {
	for _, name := range g.Connections {
		r.add(mayUse, "connection."+name)
	}
	if h := g.HTTP; h != nil {
		r.http(h.Allow, h.Redirects, h.MaxBody)
		r.each(mayReach, h.Private)
	}
	for _, bucket := range slices.Sorted(maps.Keys(g.KV)) {
		r.add(mayReadKeys, "bucket "+bucket)
		if g.KV[bucket] == access.ReadWrite {
			r.add(mayWriteKeys, "bucket "+bucket)
		}
	}
	r.each(mayPublish, g.Publish)
	r.each(maySend, g.Request)
	for _, guest := range slices.Sorted(maps.Keys(g.Secrets)) {
		r.add(mayGet, "secret."+g.Secrets[guest])
	}
	for _, name := range slices.Sorted(maps.Keys(g.Env)) {
		r.add(maySee, "variable "+name)
	}
	if g.Clock == access.Real {
		r.add(maySee, "the real clock")
	}
	if g.Random == access.Real {
		r.add(maySee, "real random numbers")
	}
	if g.Artifacts {
		r.add(mayStore, "artifacts")
	}
}

func (r *rights) each(right string, to []string) {
	for _, one := range to {
		r.add(right, one)
	}
}

func (r *rights) http(rules []string, redirects int, body int64) {
	r.each(mayRequest, rules)
	if redirects > 0 {
		r.add(mayFollow, fmt.Sprintf("up to %d redirects", redirects))
	}
	if size := cmp.Or(body, access.DefaultBody); size > access.DefaultBody {
		r.add(mayReceive, fmt.Sprintf("up to %d MiB in a response", (size+1<<20-1)>>20))
	}
}

// through adds what a connection of the flow's files opens. One of the settings of the host
// is the operator's to change.
func (r *rights) through(name string, c *access.Connection, secret func(name string) *access.Secret) {
	if c == nil || c.Operator {
		return
	}
	r.via = " with connection." + name
	defer func() { r.via = "" }()
	r.each(mayReach, c.Private)
	r.sources(c.Secrets(), secret)
	switch {
	case c.HTTP != nil:
		var rules []string
		for _, rule := range c.HTTP.Allow {
			methods, path, _ := strings.Cut(rule, " ")
			rules = append(rules, methods+" "+strings.TrimSuffix(c.HTTP.BaseURL, "/")+path)
		}
		r.http(rules, c.HTTP.Redirects, c.HTTP.MaxBody)
	case c.SQL != nil:
		r.add(mayRead, c.Target())
		if c.SQL.Access == access.ReadWrite {
			r.add(mayWrite, c.Target())
		}
	case c.SMTP != nil:
		for _, to := range c.SMTP.To {
			r.add(mayMail, to+" through "+c.Target())
		}
	}
}

// sources adds where secrets are that the task uses or is handed. Those of the settings of the
// host are the operator's to change.
func (r *rights) sources(names []string, secret func(name string) *access.Secret) {
	for _, name := range names {
		if s := secret(name); s != nil && !s.Operator {
			r.add(mayUseSecret, "from "+s.Source())
		}
	}
}

// describe is a connection in words, without credentials.
func describe(c *access.Connection) string {
	switch {
	case c == nil:
		return "unknown"
	case c.Operator:
		return c.Type + ", of the settings of the host"
	case c.SQL != nil:
		return fmt.Sprintf("%s %s, %s", c.Type, c.Target(), c.SQL.Access)
	}
	return c.Type + " " + c.Target()
}

// covered reports whether a right is among others, or part of them.
func covered(r api.Right, by []api.Right) bool {
	var to []string
	for _, o := range by {
		if o.Task == r.Task && o.Right == r.Right {
			to = append(to, o.To)
		}
	}
	verb, _, through := strings.Cut(r.Right, " with connection.")
	if verb == mayRequest && access.RuleIncludes(to, r.To) {
		return true
	}
	return slices.ContainsFunc(to, func(o string) bool {
		switch {
		case o == r.To:
			return true
		case verb == mayPublish || verb == maySend:
			return access.SubjectIncludes(o, r.To)
		case verb == mayFollow || verb == mayReceive:
			var most, n int
			_, unknown := fmt.Sscanf(o, "up to %d", &most)
			_, err := fmt.Sscanf(r.To, "up to %d", &n)
			return unknown == nil && err == nil && n <= most
		case verb == mayMail:
			return mailIncludes(o, r.To)
		}
		return !through && (verb == mayRead || verb == mayWrite) && strings.HasPrefix(r.To, o+"/")
	})
}

// mailIncludes compares recipients, each with the server that it is reached through.
func mailIncludes(outer, inner string) bool {
	domain, all := strings.CutPrefix(outer, "*@")
	_, other, ok := strings.Cut(inner, "@")
	return all && ok && domain == other
}
