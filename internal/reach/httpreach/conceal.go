package httpreach

import (
	"net/url"
	"regexp"
	"strings"

	"github.com/flowhost/flowhost/internal/httprule"
	"github.com/flowhost/flowhost/run/access"
)

// cover hides the address of a connection from the guest: what is below the base URL is shown
// as a path below it, and nothing else of the server's origin is shown. Bodies are the
// server's data and are not touched. A nil cover, of the http grant, hides nothing.
type cover struct {
	name string
	base *httprule.Target
}

// newCover returns the cover of a connection, nil without one.
func newCover(connection *access.Connection) *cover {
	if connection == nil || connection.HTTP == nil {
		return nil
	}
	base, err := httprule.ParseBase(connection.HTTP.BaseURL)
	if err != nil {
		base = &httprule.Target{} // of a declaration that is wrong, which is reported
	}
	return &cover{connection.Name, base}
}

// anyURL finds what is left of addresses in texts.
var anyURL = regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://[^\s"]*`)

// text is a text of the host, with paths below the base URL in place of its URLs.
func (c *cover) text(text string) string {
	return anyURL.ReplaceAllStringFunc(text, func(found string) string {
		if path, ok := strings.CutPrefix(found, c.prefix()); ok && strings.HasPrefix(path, "/") {
			return path
		}
		return "…"
	})
}

// prefix is the base URL without its last slash.
func (c *cover) prefix() string { return c.base.Origin() + strings.TrimSuffix(c.base.Path, "/") }

// fault is a fault for the guest, with all that it may not see for the operator.
func (c *cover) fault(f *access.Fault) *access.Fault {
	if c == nil {
		return f
	}
	guest, full := *f, *f.Full()
	full.Inside = nil
	if f.Rule == rulePrivate {
		guest.Message = "connection " + c.name + " refused: its address is not public, and the connection or the operator does not name it"
		guest.Target, guest.Add = c.name, ""
	}
	for _, text := range []*string{&guest.Message, &guest.Target, &guest.Rule, &guest.Add, &guest.Detail} {
		*text = c.text(*text)
	}
	guest.Inside = &full
	return &guest
}

// url is where an answer came from.
func (c *cover) url(t *httprule.Target) string {
	if c == nil {
		return t.URL()
	}
	return c.text(t.URL())
}

// linked are headers whose value is a URL.
var linked = map[string]bool{"Location": true, "Content-Location": true}

// inLink finds the URLs of a Link header (RFC 8288).
var inLink = regexp.MustCompile(`<[^>]*>`)

// header is a header's value as the guest sees it; ok is false if it must not see it.
func (c *cover) header(name, value string, from *httprule.Target) (shown string, ok bool) {
	switch {
	case c == nil:
		return value, true
	case linked[name]:
		if value, ok = c.reference(value, from); !ok {
			return "", false
		}
	case name == "Link":
		ok = true
		value = inLink.ReplaceAllStringFunc(value, func(found string) string {
			to, fine := c.reference(found[1:len(found)-1], from)
			ok = ok && fine
			return "<" + to + ">"
		})
		if !ok {
			return "", false
		}
	}
	return value, !c.names(value)
}

// reference is a URL of the server's, as a path below the base URL if it leads there. One that
// leads elsewhere on the server is not shown, one to another server is the server's data.
func (c *cover) reference(text string, from *httprule.Target) (string, bool) {
	base, err := url.Parse(from.URL())
	if err != nil {
		return "", false
	}
	ref, err := url.Parse(text)
	if err != nil {
		return "", false
	}
	to := base.ResolveReference(ref)
	if !strings.EqualFold(strings.TrimSuffix(to.Hostname(), "."), c.base.Host) {
		return text, true
	}
	fragment := ""
	if to.Fragment != "" {
		fragment, to.Fragment, to.RawFragment = "#"+to.EscapedFragment(), "", ""
	}
	target, err := httprule.ParseTarget(to.String())
	if err != nil {
		return "", false
	}
	path, below := strings.CutPrefix(target.URL(), c.prefix())
	if !below || !strings.HasPrefix(path, "/") {
		return "", false
	}
	return path + fragment, true
}

// hides reports whether the name of a header must not be shown.
func (c *cover) hides(name string) bool { return c != nil && c.names(name) }

// names reports whether a text names the server. A host without a dot is a word that may be
// anywhere, and an address only with its port or as part of a URL.
func (c *cover) names(text string) bool {
	text, host := strings.ToLower(text), c.base.Host
	switch {
	case host == "":
		return false
	case strings.ContainsAny(host, ".:"):
		return strings.Contains(text, host)
	}
	return strings.Contains(text, "//"+host) || strings.Contains(text, hostPort(host, c.base.Port))
}
