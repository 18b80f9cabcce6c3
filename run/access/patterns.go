package access

import (
	"slices"
	"strings"
)

// This file compares patterns. A comparison that cannot be decided is a "no": at load that is
// an error for the author, and at a call both patterns must match anyway.

// SubjectIncludes reports whether all NATS subjects that the inner pattern matches are matched
// by the outer one.
func SubjectIncludes(outer, inner string) bool {
	o, in := strings.Split(outer, "."), strings.Split(inner, ".")
	for i, token := range o {
		switch {
		case token == ">":
			return len(in) > i
		case i >= len(in) || in[i] == ">":
			return false
		case token != "*" && token != in[i]:
			return false
		}
	}
	return len(in) == len(o)
}

// RuleIncludes reports whether all requests that the inner HTTP rule allows are allowed by the
// outer rules. Rules are METHOD[,METHOD] scheme://host[:port]/path, or without scheme and host
// for those of a connection. Each method of the inner rule must be included by one outer rule.
func RuleIncludes(outer []string, inner string) bool {
	methods, target, ok := strings.Cut(inner, " ")
	if !ok {
		return false
	}
	for method := range strings.SplitSeq(methods, ",") {
		if !slices.ContainsFunc(outer, func(rule string) bool {
			allowed, to, ok := strings.Cut(rule, " ")
			return ok && slices.Contains(strings.Split(allowed, ","), method) && targetIncludes(strings.TrimSpace(to), strings.TrimSpace(target))
		}) {
			return false
		}
	}
	return true
}

func targetIncludes(outer, inner string) bool {
	o, in := splitTarget(outer), splitTarget(inner)
	return o.scheme == in.scheme && hostIncludes(o.host, in.host) && pathIncludes(o.path, in.path)
}

type target struct{ scheme, host, path string }

func splitTarget(text string) target {
	scheme, rest, full := strings.Cut(text, "://")
	if !full {
		return target{path: text}
	}
	host, path, _ := strings.Cut(rest, "/")
	t := target{strings.ToLower(scheme), strings.ToLower(host), "/" + path}
	switch t.scheme {
	case "https":
		t.host = strings.TrimSuffix(t.host, ":443")
	case "http":
		t.host = strings.TrimSuffix(t.host, ":80")
	}
	return t
}

// hostIncludes compares hosts with their ports. *.example.com includes the names below
// example.com.
func hostIncludes(outer, inner string) bool {
	domain, wild := strings.CutPrefix(outer, "*")
	return outer == inner || wild && strings.HasPrefix(domain, ".") && len(inner) > len(domain) && strings.HasSuffix(inner, domain)
}

// pathIncludes compares paths by segment: * is one that is not empty, and ** at the end is one
// or more.
func pathIncludes(outer, inner string) bool {
	o, in := strings.Split(outer, "/"), strings.Split(inner, "/")
	for i, segment := range o {
		switch {
		case segment == "**":
			return len(in) > i
		case i >= len(in) || in[i] == "**":
			return false
		case segment != in[i] && (segment != "*" || in[i] == ""):
			return false
		}
	}
	return len(in) == len(o)
}

// below reports whether a path is a directory or in it, "." being all of them.
func below(directory, path string) bool {
	rest, ok := strings.CutPrefix(path, directory)
	return directory == "." || ok && (rest == "" || rest[0] == '/')
}
