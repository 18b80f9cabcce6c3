package httprule

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/net/publicsuffix"
)

// Rule allows requests. The zero value allows none.
type Rule struct {
	methods   []string
	origin    Target // without path; its host is what follows "*." of a wildcard. Zero for a path rule
	subdomain bool   // the host was written with "*."
	segments  []segment
}

// segment is a part of a rule's path.
type segment struct {
	kind kind
	text string // of a literal, in canonical form
}

type kind uint8

const (
	literal kind = iota
	one          // *
	rest         // **
)

// Parse reads METHOD[,METHOD] scheme://host[:port]/path.
func Parse(text string) (Rule, error) {
	methods, target, err := cutMethods(text)
	if err != nil {
		return Rule{}, ruleError(text, err)
	}
	r := Rule{methods: methods}
	if err := r.parseTarget(strings.Join(methods, ","), target); err != nil {
		return Rule{}, ruleError(text, err)
	}
	return r, nil
}

// ParsePath reads METHOD[,METHOD] /path, a rule of a connection. It matches nothing until
// Below has given it the connection's base URL.
func ParsePath(text string) (Rule, error) {
	methods, path, err := cutMethods(text)
	if err != nil {
		return Rule{}, ruleError(text, err)
	}
	if !strings.HasPrefix(path, "/") {
		return Rule{}, ruleError(text, fmt.Errorf("%s is not a path below the connection's base URL: write %s /path", quote(path), strings.Join(methods, ",")))
	}
	r := Rule{methods: methods}
	if r.segments, err = parseSegments(path); err != nil {
		return Rule{}, ruleError(text, err)
	}
	return r, nil
}

func ruleError(text string, err error) error { return fmt.Errorf("rule %s: %w", quote(text), err) }

func cutMethods(text string) (methods []string, target string, err error) {
	if len(text) > MaxLength {
		return nil, "", fmt.Errorf("it is longer than %d bytes", MaxLength)
	}
	words := strings.Fields(text)
	if len(words) != 2 {
		return nil, "", errors.New(`write methods, one space and the target: "GET,POST https://example.com/data/**"`)
	}
	for method := range strings.SplitSeq(words[0], ",") {
		if err := CheckMethod(method); err != nil {
			return nil, "", err
		}
		methods = append(methods, method)
	}
	slices.Sort(methods)
	return slices.Compact(methods), words[1], nil
}

// CheckMethod says what is wrong with a method, of a rule or of a request.
func CheckMethod(method string) error {
	switch {
	case method == "*":
		return errors.New("methods are named one by one: write GET,POST instead of *")
	case method == "CONNECT" || method == "TRACE":
		return fmt.Errorf("the method %s cannot be allowed", method)
	case method == "" || len(method) > 32 || strings.Trim(method, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-") != "" || strings.Trim(method, "-") != method:
		return fmt.Errorf("the method %s is not in upper-case letters: write GET, HEAD, POST, PUT, PATCH or DELETE", quote(method))
	}
	return nil
}

func (r *Rule) parseTarget(methods, target string) error {
	scheme, after, ok := strings.Cut(target, "://")
	if !ok {
		return fmt.Errorf("%s has no scheme: write %s https://%s", quote(target), methods, target)
	}
	if scheme == "*" {
		return errors.New("the scheme is http or https: write a rule for each")
	}
	port, err := defaultPort(scheme)
	if err != nil {
		return err
	}
	authority, path, ok := strings.Cut(after, "/")
	if !ok {
		return fmt.Errorf("the path is missing: write %s %s://%s/** for every path", methods, scheme, after)
	}
	authority, r.subdomain = strings.CutPrefix(authority, "*.")
	if strings.Contains(authority, "*") {
		return fmt.Errorf("the host %s has a * that is not its first part alone: write the host, or *.example.com for every subdomain", quote(authority))
	}
	r.origin = Target{Scheme: scheme, Port: port}
	if err := r.origin.setAuthority(authority); err != nil {
		return err
	}
	if r.subdomain {
		if err := checkWildcard(&r.origin); err != nil {
			return err
		}
	}
	r.segments, err = parseSegments("/" + path)
	return err
}

// checkWildcard refuses domains below which everybody can have a name.
func checkWildcard(t *Target) error {
	if _, ok := t.Addr(); ok {
		return fmt.Errorf("the host *.%s is an IP address, which has no subdomains", t.Host)
	}
	if suffix, _ := publicsuffix.PublicSuffix(t.Host); suffix == t.Host {
		return fmt.Errorf("everybody can have a name below the public suffix %s: write *.example.%s, or the host", t.Host, t.Host)
	}
	return nil
}

func parseSegments(path string) ([]segment, error) {
	if strings.ContainsAny(path, "?#") {
		return nil, errors.New("a rule has no query or fragment: leave it out, each query is allowed")
	}
	var segments []segment
	parts := strings.Split(path[1:], "/")
	for i, part := range parts {
		last := i == len(parts)-1
		switch {
		case part == "*":
			segments = append(segments, segment{kind: one})
		case part == "**" && last:
			segments = append(segments, segment{kind: rest})
		case part == "**":
			return nil, errors.New("** is the rest of a path and can only be its last segment: write * for one segment")
		case strings.Contains(part, "*"):
			return nil, fmt.Errorf("the segment %s has a * beside other characters: write * for the whole segment, or %%2A for the character", quote(part))
		case part == "" && !last:
			return nil, errors.New("the path has //, which no request may have")
		default:
			text, err := canonicalSegment(part)
			if err != nil {
				return nil, err
			}
			segments = append(segments, segment{text: text})
		}
	}
	return segments, nil
}

// Below returns the rule of a connection for its base URL.
func (r Rule) Below(base *Target) Rule {
	r.origin = Target{Scheme: base.Scheme, Host: base.Host, Port: base.Port}
	r.subdomain = false
	r.segments = slices.Concat(literals(strings.TrimSuffix(base.Path, "/")), r.segments)
	return r
}

// Exact returns the rule that allows a method for one target and nothing else: what an author
// would have to add.
func Exact(method string, t *Target) Rule {
	return Rule{
		methods:  []string{method},
		origin:   Target{Scheme: t.Scheme, Host: t.Host, Port: t.Port},
		segments: literals(t.Path),
	}
}

// ExactPath is Exact as a rule of a connection, for a target that [Target.Join] returned.
func ExactPath(method string, base, t *Target) Rule {
	return Rule{methods: []string{method}, segments: literals(strings.TrimPrefix(t.Path, strings.TrimSuffix(base.Path, "/")))}
}

// literals are the segments of a canonical path; none for "".
func literals(path string) []segment {
	var segments []segment
	for i, text := range strings.Split(path, "/") {
		if i > 0 {
			segments = append(segments, segment{text: text})
		}
	}
	return segments
}

// Match reports whether the rule allows a method for a target.
func (r Rule) Match(method string, t *Target) bool {
	return slices.Contains(r.methods, method) && r.origin.Host != "" &&
		t.Scheme == r.origin.Scheme && t.Port == r.origin.Port && r.matchHost(t.Host) && r.matchPath(t.Path)
}

func (r Rule) matchHost(host string) bool {
	if !r.subdomain {
		return host == r.origin.Host
	}
	if !strings.HasSuffix(host, "."+r.origin.Host) {
		return false
	}
	// *.example.com is not meant to be anybody's bucket below users.example.com.
	suffix, _ := publicsuffix.PublicSuffix(host)
	return len(suffix) < len(r.origin.Host)
}

func (r Rule) matchPath(path string) bool {
	for _, s := range r.segments {
		after, ok := strings.CutPrefix(path, "/")
		if !ok {
			return false
		}
		if s.kind == rest {
			return true
		}
		end := strings.IndexByte(after, '/')
		if end < 0 {
			end = len(after)
		}
		if s.kind == one && end == 0 || s.kind == literal && after[:end] != s.text {
			return false
		}
		path = after[end:]
	}
	return path == ""
}

// String returns the rule in its canonical form. Parse or ParsePath reads it.
func (r Rule) String() string {
	var out strings.Builder
	out.WriteString(strings.Join(r.methods, ","))
	out.WriteByte(' ')
	if r.origin.Host != "" {
		out.WriteString(r.origin.Scheme + "://")
		if r.subdomain {
			out.WriteString("*.")
		}
		out.WriteString(r.origin.Authority())
	}
	for _, s := range r.segments {
		out.WriteByte('/')
		switch s.kind {
		case one:
			out.WriteByte('*')
		case rest:
			out.WriteString("**")
		default:
			out.WriteString(strings.ReplaceAll(s.text, "*", "%2A"))
		}
	}
	return out.String()
}
