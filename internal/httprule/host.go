package httprule

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"golang.org/x/net/idna"
)

// canonicalHost returns a host's only spelling.
func canonicalHost(host string) (string, error) {
	if inside, ok := strings.CutPrefix(host, "["); ok {
		inside, ok = strings.CutSuffix(inside, "]")
		if !ok {
			return "", fmt.Errorf("the host %s has no closing bracket", quote(host))
		}
		return canonicalIPv6(inside)
	}
	name, err := asciiName(host)
	if err != nil {
		return "", err
	}
	if !endsInNumber(name) {
		return name, nil
	}
	// Resolvers read 127.1, 0x7f.1 and 2130706433 as addresses, each in its way.
	if addr, err := netip.ParseAddr(name); err != nil || addr.String() != host {
		return "", fmt.Errorf("the host %s is an unusual spelling of an IP address: write four decimal numbers, 192.0.2.1", quote(host))
	}
	return name, nil
}

func canonicalIPv6(text string) (string, error) {
	addr, err := netip.ParseAddr(text)
	switch {
	case err != nil || !addr.Is6():
		return "", fmt.Errorf("the host %s is not an IPv6 address", quote("["+text+"]"))
	case addr.Zone() != "":
		return "", fmt.Errorf("the host %s has a zone, which is not allowed", quote("["+text+"]"))
	case addr.Is4In6():
		return "", fmt.Errorf("the host %s is an IPv4 address: write %s", quote("["+text+"]"), addr.Unmap())
	case addr.String() != strings.ToLower(text):
		return "", fmt.Errorf("the host %s is an unusual spelling: write [%s]", quote("["+text+"]"), addr)
	}
	return addr.String(), nil
}

// maxHost bounds a host as it is written; in ASCII it is 253 bytes at most (RFC 1035).
const maxHost = 1 << 10

// asciiName is a name in lower case, in ASCII and without its final dot.
func asciiName(host string) (string, error) {
	if len(host) > maxHost { // before the work of IDNA, which grows faster than its input
		return "", fmt.Errorf("the host %s is longer than %d bytes", quote(host), maxHost)
	}
	name := strings.ToLower(host)
	if !isASCII(host) || strings.Contains("."+name, ".xn--") {
		ascii, err := idna.Lookup.ToASCII(host)
		if err == nil {
			name, err = idna.Lookup.ToASCII(ascii) // one that it made of what is not UTF-8 is refused here
		}
		if err != nil || name != ascii {
			return "", fmt.Errorf("the host %s is not an internationalized name (IDNA)", quote(host))
		}
	}
	name = strings.TrimSuffix(name, ".")
	if name == "" {
		return "", errors.New("the host is missing")
	}
	if len(name) > 253 {
		return "", fmt.Errorf("the host %s is longer than 253 bytes", quote(host))
	}
	for label := range strings.SplitSeq(name, ".") {
		if !isLabel(label) {
			return "", fmt.Errorf("the host %s is not a name: each part has 1 to 63 letters, digits, - and _", quote(host))
		}
	}
	return name, nil
}

// isLabel allows underscores, which names of services have.
func isLabel(label string) bool {
	if len(label) < 1 || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
		return false
	}
	for i := range len(label) {
		c := label[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' {
			return false
		}
	}
	return true
}

// endsInNumber reports whether a resolver might take the name for an IPv4 address (URL
// Standard, section 3.5, "ends in a number").
func endsInNumber(name string) bool {
	last := name[strings.LastIndexByte(name, '.')+1:]
	if hex, ok := strings.CutPrefix(last, "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return strings.Trim(last, "0123456789") == ""
}

func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= 0x80 {
			return false
		}
	}
	return true
}
