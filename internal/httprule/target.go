package httprule

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// MaxLength bounds the bytes of a target and of a rule, as servers do.
const MaxLength = 8 << 10

// Target is where a request leads, in its canonical form. Equal targets are equal by ==.
type Target struct {
	Scheme string // "http" or "https"
	Host   string // a name in ASCII and lower case, or an IP address, of IPv6 without brackets
	Port   uint16 // always set
	Path   string // begins with a slash; each segment decoded and encoded once
	Query  string // as it was written, without "?"
}

// ParseTarget returns the canonical form of an absolute URL, or why it has none.
func ParseTarget(raw string) (*Target, error) {
	t, err := parseTarget(raw)
	if err != nil {
		return nil, fmt.Errorf("URL %s: %w", quote(raw), err)
	}
	return t, nil
}

// ParseBase is ParseTarget for the base URL of a connection, which has no query.
func ParseBase(raw string) (*Target, error) {
	t, err := parseTarget(raw)
	if err == nil && strings.Contains(raw, "?") {
		err = errors.New("a base URL has no query: write it with each request")
	}
	if err != nil {
		return nil, fmt.Errorf("base URL %s: %w", quote(raw), err)
	}
	return t, nil
}

func parseTarget(raw string) (*Target, error) {
	if len(raw) > MaxLength {
		return nil, fmt.Errorf("it is longer than %d bytes", MaxLength)
	}
	if strings.Contains(raw, "#") {
		return nil, errors.New("a fragment is not sent: leave out # and what follows, or write %23")
	}
	before, query, _ := strings.Cut(raw, "?")
	scheme, rest, ok := strings.Cut(before, "://")
	if !ok {
		return nil, errors.New("it does not begin with http:// or https://")
	}
	t := &Target{Scheme: strings.ToLower(scheme), Query: query}
	authority, path := rest, "/"
	if slash := strings.IndexByte(rest, '/'); slash >= 0 {
		authority, path = rest[:slash], rest[slash:]
	}
	var err error
	if t.Port, err = defaultPort(t.Scheme); err != nil {
		return nil, err
	}
	if err := t.setAuthority(authority); err != nil {
		return nil, err
	}
	if t.Path, err = canonicalPath(path); err != nil {
		return nil, err
	}
	if i := strings.IndexFunc(query, func(c rune) bool { return c <= ' ' || c >= 0x7f }); i >= 0 {
		return nil, fmt.Errorf("the query has the character %q: percent-encode it", []rune(query[i:])[0])
	}
	return t, nil
}

func defaultPort(scheme string) (uint16, error) {
	switch scheme {
	case "http":
		return 80, nil
	case "https":
		return 443, nil
	}
	return 0, fmt.Errorf("the scheme %s is neither http nor https", quote(scheme))
}

// setAuthority takes host[:port]. The port is that of the scheme before.
func (t *Target) setAuthority(authority string) error {
	if strings.Contains(authority, "@") {
		return errors.New("a user or password is not allowed in a URL: use a connection with auth")
	}
	host, port := authority, ""
	if colon := strings.LastIndexByte(authority, ':'); colon > strings.LastIndexByte(authority, ']') {
		host, port = authority[:colon], authority[colon+1:]
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 || strconv.FormatUint(n, 10) != port {
			return fmt.Errorf("the port %s is not a number from 1 to 65535", quote(port))
		}
		t.Port = uint16(n)
	}
	var err error
	t.Host, err = canonicalHost(host)
	return err
}

// URL is the URL that is dialed. ParseTarget(t.URL()) is t.
func (t *Target) URL() string {
	if t.Query == "" {
		return t.Origin() + t.Path
	}
	return t.Origin() + t.Path + "?" + t.Query
}

// Origin is scheme, host and port, "https://example.com:8443". The port of the scheme is left
// out.
func (t *Target) Origin() string { return t.Scheme + "://" + t.Authority() }

// SameOrigin reports whether both have one origin.
func (t *Target) SameOrigin(other *Target) bool {
	return t.Scheme == other.Scheme && t.Host == other.Host && t.Port == other.Port
}

// Authority is host and port as a Host header has them.
func (t *Target) Authority() string {
	host := t.Host
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if port, err := defaultPort(t.Scheme); err == nil && port == t.Port {
		return host
	}
	return host + ":" + strconv.Itoa(int(t.Port))
}

// Addr is the host's IP address, if it is one and not a name.
func (t *Target) Addr() (netip.Addr, bool) {
	addr, err := netip.ParseAddr(t.Host)
	return addr, err == nil
}

// Join returns the target of a path with an optional query, "/repos?page=2", below t as the
// base.
func (t *Target) Join(raw string) (*Target, error) {
	if !strings.HasPrefix(raw, "/") {
		return nil, fmt.Errorf("URL %s: below a base URL it is a path that begins with /", quote(raw))
	}
	joined, err := parseTarget(t.Origin() + strings.TrimSuffix(t.Path, "/") + raw)
	if err != nil {
		return nil, fmt.Errorf("URL %s: %w", quote(raw), err)
	}
	return joined, nil
}

// quote shows a bounded part of what a stranger wrote.
func quote(text string) string {
	const most = 200
	if len(text) > most {
		return strconv.QuoteToASCII(text[:most]) + "…"
	}
	return strconv.QuoteToASCII(text)
}
