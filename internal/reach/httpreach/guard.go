package httpreach

import (
	"fmt"
	"net"
	"net/netip"
	"slices"

	"code.dny.dev/ssrf"

	"github.com/flowhost/flowhost/run/access"
)

// public knows which addresses are global unicast and of no special purpose, after IANA's
// registries. It refuses all forms that embed an IPv4 address.
var public = ssrf.New(ssrf.WithAnyPort())

// guard decides which addresses are dialed.
type guard struct {
	private []netip.AddrPort // open although they are not public
	own     []string         // host:port in the operator's settings, whose loopback and private addresses are open
	missing string           // what a refused address would need
}

// rulePrivate is the rule of faults for addresses that are not public.
const rulePrivate = "private address"

// check refuses an address that a host, "example.com:443", has been resolved to.
func (g *guard) check(host string, address netip.AddrPort) error {
	address = netip.AddrPortFrom(address.Addr().Unmap(), address.Port())
	ip := address.Addr()
	if public.SafeAddr(ip) == nil || slices.Contains(g.private, address) {
		return nil
	}
	if slices.Contains(g.own, host) && (ip.IsLoopback() || ip.IsPrivate() || address.String() == host) {
		return nil
	}
	return &access.Fault{
		Code:    access.CodeDenied,
		Message: fmt.Sprintf("%s refused: its address %s is not public: %s", host, ip, g.missing),
		Target:  host,
		Rule:    rulePrivate,
		Add:     fmt.Sprintf("private = [%q]", address),
	}
}

// checkLiteral is check for a host that is an address. A proxy would not be asked for it.
func (g *guard) checkLiteral(host string) error {
	if address, err := netip.ParseAddrPort(host); err == nil {
		return g.check(host, address)
	}
	return nil
}

// addresses reads ADDRESS:PORT. What it cannot read opens nothing.
func addresses(list []string) []netip.AddrPort {
	var all []netip.AddrPort
	for _, text := range list {
		if a, err := netip.ParseAddrPort(text); err == nil && a.Addr().Zone() == "" && a.Port() != 0 {
			all = append(all, netip.AddrPortFrom(a.Addr().Unmap(), a.Port()))
		}
	}
	return all
}

// both are the addresses that author and operator name.
func both(author, operator []string) []netip.AddrPort {
	keys := addresses(operator)
	return slices.DeleteFunc(addresses(author), func(a netip.AddrPort) bool { return !slices.Contains(keys, a) })
}

// hostPort is a host as it is dialed.
func hostPort(host string, port uint16) string {
	return net.JoinHostPort(host, fmt.Sprint(port))
}
