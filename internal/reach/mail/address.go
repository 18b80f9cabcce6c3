package mail

import (
	netmail "net/mail"
	"strings"

	"github.com/flowhost/flowhost/run/access"
)

// address is a mailbox in its canonical form: the domain is in lower case.
type address struct {
	name          string // for people
	local, domain string
}

func (a address) String() string { return a.local + "@" + a.domain }

// header is the address as a header has it.
func (a address) header() string {
	return (&netmail.Address{Name: a.name, Address: a.String()}).String()
}

// parseAddress reads "ops@example.com" or "Ops <ops@example.com>". Forms that servers read
// differently are refused: quoted local parts, routes by % and !, addresses of machines.
func parseAddress(text string) (address, bool) {
	if len(text) > 500 || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return address{}, false
	}
	parsed, err := netmail.ParseAddress(text)
	if err != nil || text != parsed.Address && !strings.HasSuffix(text, "<"+parsed.Address+">") || // a group
		strings.ContainsFunc(parsed.Name, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return address{}, false
	}
	local, domain, ok := strings.Cut(parsed.Address, "@")
	a := address{parsed.Name, local, strings.ToLower(domain)}
	return a, ok && isLocal(a.local) && isDomain(a.domain)
}

// isLocal reports whether a local part is a dot-atom of RFC 5321 without routes.
func isLocal(local string) bool {
	if len(local) > 64 {
		return false
	}
	for atom := range strings.SplitSeq(local, ".") {
		if atom == "" || strings.ContainsFunc(atom, func(r rune) bool {
			return !isAlphanumeric(r) && !strings.ContainsRune("#$&'*+-/=?^_`{|}~", r)
		}) {
			return false
		}
	}
	return true
}

// isDomain reports whether a domain is a name of at least two labels.
func isDomain(domain string) bool {
	labels := strings.Split(domain, ".")
	for _, label := range labels {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' ||
			strings.ContainsFunc(label, func(r rune) bool { return !isAlphanumeric(r) && r != '-' }) {
			return false
		}
	}
	return len(domain) <= 253 && len(labels) >= 2
}

func isAlphanumeric(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
}

// mayReceive reports whether patterns have an address: itself, or *@ its domain. The local
// part is compared as it is written: what it means is up to the server.
func mayReceive(patterns []string, a address) bool {
	for _, pattern := range patterns {
		at := strings.LastIndexByte(pattern, '@')
		if at < 0 || !strings.EqualFold(pattern[at+1:], a.domain) {
			continue
		}
		if local := pattern[:at]; local == "*" || local == a.local {
			return true
		}
	}
	return false
}

// recipients returns the addresses of a list, all of which may be addressed.
func recipients(member string, list []string, smtp *access.SMTPConnection) ([]address, *access.Fault) {
	all := make([]address, 0, len(list))
	for _, text := range list {
		a, ok := parseAddress(text)
		if !ok {
			return nil, invalid("%s: %.100q is no address: write ops@example.com, or Ops <ops@example.com>", member, text)
		}
		if !mayReceive(smtp.To, a) {
			return nil, &access.Fault{
				Code: access.CodeDenied, Target: a.String(), Rule: "recipients of the connection", Add: "to = [\"" + a.String() + "\"]",
				Message: "recipient " + a.String() + " refused: the connection does not list it, nor its domain",
			}
		}
		all = append(all, a)
	}
	return all, nil
}
