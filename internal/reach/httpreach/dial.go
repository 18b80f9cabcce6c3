package httpreach

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/flowhost/flowhost/run/access"
)

const (
	maxAddresses = 16 // of a name that are tried
	dialTimeout  = 10 * time.Second
)

// dialer connects a transport's requests under its guard.
type dialer struct {
	resolver Resolver
	guard    *guard
	only     string // host:port of the proxy, if everything goes through one

	mu     sync.Mutex
	closed bool
	open   map[*conn]struct{}
}

// Dial opens the network connection of another driver, of a database or a mail server, under
// the same rules: only public addresses are dialed, those that c.Private names, and, for a
// connection of the operator, those of the host that it names itself. A socket of the system
// is for connections of the operator.
func (c *Client) Dial(ctx context.Context, to *access.Connection, network, address string) (net.Conn, error) {
	if network == "unix" {
		if !to.Operator {
			return nil, &access.Fault{Code: access.CodeDenied, Rule: "socket", Target: address, Message: "a socket of the system is for connections in the operator's settings"}
		}
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	g := &guard{private: addresses(to.Private), missing: "private needs it in the connection " + to.Name + " and in the operator's allow block"}
	if to.Operator {
		g.own = []string{address}
	}
	return (&dialer{resolver: c.config.Resolver, guard: g}).DialContext(ctx, network, address)
}

// tryKey is the key of a try's context among the values of the one that net/http dials with,
// which outlives the request.
type tryKey struct{}

// withTry returns the context of a request.
func withTry(ctx context.Context) context.Context { return context.WithValue(ctx, tryKey{}, ctx) }

// DialContext is that of [net/http.Transport].
func (d *dialer) DialContext(ctx context.Context, network, host string) (net.Conn, error) {
	if d.only != "" && host != d.only {
		return nil, &access.Fault{Code: access.CodeInternal, Message: "the request was about to go past its proxy"}
	}
	if try, ok := ctx.Value(tryKey{}).(context.Context); ok {
		ctx = try
	}
	all, err := d.resolve(ctx, host)
	if err != nil {
		return nil, err
	}
	for _, address := range all {
		if err := d.guard.check(host, address); err != nil {
			return nil, err
		}
	}
	if len(all) > maxAddresses {
		all = all[:maxAddresses]
	}
	for i, address := range all {
		var raw net.Conn
		if raw, err = d.connect(ctx, network, host, address, len(all)-i); err == nil {
			return d.keep(raw)
		}
	}
	return nil, err
}

// connect tries one address, with a fair share of the time that is left for all.
func (d *dialer) connect(ctx context.Context, network, host string, address netip.AddrPort, left int) (net.Conn, error) {
	timeout := dialTimeout
	if deadline, ok := ctx.Deadline(); ok && left > 1 {
		timeout = min(timeout, time.Until(deadline)/time.Duration(left))
	}
	one := net.Dialer{
		Timeout:       max(timeout, time.Millisecond),
		FallbackDelay: -1,
		Control: func(network, dialed string, _ syscall.RawConn) error {
			real, err := netip.ParseAddrPort(dialed)
			if err != nil || network != "tcp4" && network != "tcp6" {
				return &access.Fault{Code: access.CodeInternal, Message: fmt.Sprintf("the socket's address %s %s is unknown", network, dialed)}
			}
			return d.guard.check(host, real)
		},
	}
	return one.DialContext(ctx, network, address.String())
}

// conn is a network connection that its dialer can close.
type conn struct {
	net.Conn
	dialer *dialer
}

func (d *dialer) keep(raw net.Conn) (net.Conn, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		_ = raw.Close()
		return nil, net.ErrClosed
	}
	if d.open == nil {
		d.open = map[*conn]struct{}{}
	}
	c := &conn{Conn: raw, dialer: d}
	d.open[c] = struct{}{}
	return c, nil
}

// Close is that of [net.Conn].
func (c *conn) Close() error {
	c.dialer.mu.Lock()
	delete(c.dialer.open, c)
	c.dialer.mu.Unlock()
	return c.Conn.Close()
}

// close ends what net/http would keep after its last request: handshakes that nobody waits
// for, and streams of HTTP/2.
func (d *dialer) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	for c := range d.open {
		_ = c.Conn.Close()
	}
}

// resolve returns the addresses of host:port, at least one.
func (d *dialer) resolve(ctx context.Context, host string) ([]netip.AddrPort, error) {
	name, portText, err := net.SplitHostPort(host)
	if err != nil {
		return nil, err
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		return nil, err
	}
	if ip, err := netip.ParseAddr(name); err == nil {
		return []netip.AddrPort{netip.AddrPortFrom(ip.Unmap(), uint16(port))}, nil
	}
	if strings.Contains(name, ".") {
		name += "." // the search domains of the host are not for strangers
	}
	found, err := d.resolver.LookupNetIP(ctx, "ip", name)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, errors.New("its host has no address")
	}
	all := make([]netip.AddrPort, len(found))
	for i, ip := range found {
		all[i] = netip.AddrPortFrom(ip.Unmap(), uint16(port))
	}
	return all, nil
}
