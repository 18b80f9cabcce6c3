package reachspec

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"path"
	"strings"

	"github.com/flowhost/flowhost/run"
)

// Address checks ADDRESS:PORT, an address that is not public, in its canonical form: what is
// opened is compared with what is dialed.
func Address(text string) error {
	at, err := netip.ParseAddrPort(text)
	switch {
	case err != nil:
		return errors.New("it must be ADDRESS:PORT, such as \"10.0.0.5:5432\" or \"[fd00::5]:5432\", without a name")
	case at.Addr().Zone() != "" || at.Addr().Is4In6() || at.String() != text:
		return fmt.Errorf("its canonical form is %q", netip.AddrPortFrom(at.Addr().Unmap().WithZone(""), at.Port()))
	case at.Port() == 0 || at.Addr().IsUnspecified() || at.Addr().IsMulticast():
		return errors.New("nothing can be reached there: name the address and the port of one server")
	}
	return nil
}

// Subject checks a pattern of subjects on NATS to which guests may send.
func Subject(text string) error {
	if strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return errors.New("a subject has no spaces and no control characters")
	}
	tokens := strings.Split(text, ".")
	for i, token := range tokens {
		switch {
		case token == "":
			return errors.New("a token of it is empty: tokens are joined by single dots")
		case len(token) > 1 && strings.ContainsAny(token, "*>"):
			return errors.New("* and > are whole tokens")
		case token == ">" && i < len(tokens)-1:
			return errors.New("> can only be the last token")
		}
	}
	if why := run.ReservedSubject(text); why != "" {
		return errors.New(why)
	}
	return nil
}

// MaxName is the length of the names of buckets and variables.
const MaxName = 128

// Bucket checks the name of a bucket, which is a part of a stream's name.
func Bucket(name string) error {
	const characters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
	if name == "" || len(name) > MaxName || strings.Trim(name, characters) != "" {
		return fmt.Errorf("the name of a bucket has letters, digits, - and _ only, at most %d", MaxName)
	}
	return nil
}

// Variable checks the name of an environment variable.
func Variable(name string) error {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_"
	if name == "" || len(name) > MaxName || strings.Trim(name, letters+"0123456789") != "" || !strings.Contains(letters, name[:1]) {
		return fmt.Errorf("the name of a variable has letters, digits and _ only, at most %d, and begins with no digit", MaxName)
	}
	return nil
}

// URL checks the address of a server: it must hold no credentials, no query and no fragment.
func URL(text string, schemes ...string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return errors.New("it cannot be read as a URL") // the error would quote credentials
	case u.User != nil:
		return errors.New("it must not contain credentials, which are shown in lists: use a secret")
	case !contains(schemes, u.Scheme) || u.Host == "" || u.Opaque != "":
		return fmt.Errorf("it must begin with %s:// and a host", strings.Join(schemes, ":// or "))
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || strings.Contains(text, "#"):
		return errors.New("it must have no query and no fragment")
	case path.Clean("/"+u.Path) != "/"+strings.Trim(u.Path, "/"):
		return errors.New("its path must be in canonical form: without empty segments and without dots as segments")
	}
	return nil
}

func contains(all []string, one string) bool {
	for _, s := range all {
		if s == one {
			return true
		}
	}
	return false
}

// DSN checks that the address of a database is without a password: it is shown in lists.
func DSN(text string) error {
	const advice = "use a secret for the whole of it: dsn = secret.NAME"
	if u, err := url.Parse(text); err == nil && u.User != nil {
		if _, given := u.User.Password(); given {
			return errors.New("it contains a password: " + advice)
		}
	}
	if account, _, ok := strings.Cut(text, "@"); ok && !strings.Contains(account, "://") && strings.Contains(account, ":") {
		return errors.New("it contains a password: " + advice) // user:password@tcp(host)/database
	}
	if lower := strings.ToLower(text); strings.Contains(lower, "password=") || strings.Contains(lower, "password =") {
		return errors.New("it contains a password: " + advice)
	}
	return nil
}

// Mailbox checks a sender: the address alone, without a name.
func Mailbox(text string) error {
	local, domain, ok := strings.Cut(text, "@")
	if !ok || local == "" || domain == "" || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r >= 0x7f }) ||
		strings.ContainsAny(text, `<>,;:"()*`) || strings.Contains(domain, "@") || strings.HasPrefix(domain, ".") || strings.HasSuffix(domain, ".") {
		return errors.New("it must be one address, such as \"ops@example.com\"")
	}
	return nil
}

// Recipient checks an address, or *@domain for all addresses of a domain.
func Recipient(text string) error {
	if domain, all := strings.CutPrefix(text, "*@"); all {
		text = "x@" + domain
	}
	if Mailbox(text) != nil {
		return errors.New("it must be one address, or \"*@example.com\" for all of a domain")
	}
	return nil
}

// Host checks the name or address of a server.
func Host(text string) error {
	if _, err := netip.ParseAddr(text); err == nil {
		return nil
	}
	if text == "" || len(text) > 253 || strings.Trim(strings.ToLower(text), "abcdefghijklmnopqrstuvwxyz0123456789-.") != "" ||
		strings.HasPrefix(text, ".") || strings.HasSuffix(text, ".") || strings.Contains(text, "..") {
		return errors.New("it must be the name of a server, without port and scheme")
	}
	return nil
}

// Pattern checks the pattern of an allow block, which matches full names of flows.
func Pattern(text string) error {
	const characters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-/*"
	switch {
	case text == "" || strings.Trim(text, characters) != "":
		return errors.New("a pattern is the full name of a flow, with * for any part of it: \"billing/*\"")
	case strings.Contains(text, "**"):
		return errors.New("* is any part of a name already: write it once")
	case strings.HasPrefix(text, "/") || strings.HasSuffix(text, "/") || strings.Contains(text, "//"):
		return errors.New("no flow has such a name: the directory and the flow are joined by one /")
	}
	return nil
}

// Below checks the path of a file below the directory of the flow file.
func Below(text string) error {
	clean := path.Clean(text)
	if text == "" || path.IsAbs(clean) || strings.Contains(text, "\\") || strings.ContainsRune(text, 0) || clean == ".." || strings.HasPrefix(clean, "../") || clean == "." {
		return errors.New("it must be a path below the directory of this file, such as \"./data/stock.db\"")
	}
	return nil
}

// File checks the path of a file, absolute or relative to the directory of this one.
func File(text string) error {
	if text == "" || strings.ContainsRune(text, 0) {
		return errors.New("it must be the path of a file")
	}
	return nil
}

// VaultPath checks the path of a secret, "kv/data/stripe".
func VaultPath(text string) error {
	if text == "" || strings.Trim(text, "/") != text || path.Clean("/"+text) != "/"+text || strings.ContainsAny(text, "?#%\\ ") ||
		strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return errors.New("it must be a path below the API of the server, such as \"kv/data/stripe\"")
	}
	return nil
}

// Header checks the name of a header.
func Header(name string) error {
	const characters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	if name == "" || len(name) > MaxName || strings.Trim(name, characters) != "" {
		return fmt.Errorf("the name of a header has letters, digits, - and _ only, at most %d", MaxName)
	}
	return nil
}

// NotEmpty checks that a text has something in it.
func NotEmpty(text string) error {
	if strings.TrimSpace(text) == "" {
		return errors.New("it is empty")
	}
	return nil
}

// Proxy checks the URL of an HTTP proxy.
func Proxy(text string) error { return URL(text, "http", "https") }

// AnyBucket checks the name of a bucket, or * for all.
func AnyBucket(name string) error {
	if name == "*" {
		return nil
	}
	return Bucket(name)
}

// AnyVariable checks the name of an environment variable, or * for all.
func AnyVariable(name string) error {
	if name == "*" {
		return nil
	}
	return Variable(name)
}

// Directory checks a directory below that of a flow file, or "." for all of them.
func Directory(text string) error {
	if path.Clean(text) == "." {
		return nil
	}
	return Below(text)
}
