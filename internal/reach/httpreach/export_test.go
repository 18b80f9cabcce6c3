package httpreach

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/flowhost/flowhost/run/access"
)

// Lanes is how many policies keep a transport.
func (c *Client) Lanes() int {
	c.lanes.mu.Lock()
	defer c.lanes.mu.Unlock()
	return len(c.lanes.table)
}

// MaxLanes bounds them.
const MaxLanes = maxLanes

// SetSleep replaces how retries wait.
func (c *Client) SetSleep(sleep func(context.Context, time.Duration) error) { c.sleep = sleep }

// SetNow replaces the clock of tokens, signatures and certificates.
func (c *Client) SetNow(now func() time.Time) { c.now = now }

// IsPublic is what the address check says without any private address.
func IsPublic(ip netip.Addr) bool {
	return (&guard{}).check("host:80", netip.AddrPortFrom(ip, 80)) == nil
}

// Connect dials an address as if it had passed the first check.
func Connect(ctx context.Context, address netip.AddrPort, private ...netip.AddrPort) (net.Conn, error) {
	d := &dialer{guard: &guard{private: private}}
	return d.connect(ctx, "tcp", "example.com:80", address, 1)
}

// Sign is the Authorization header of a request in the form of the published test suite.
func Sign(keys [3]string, region, service, method, host, path, query string, headers http.Header, body []byte, now time.Time) string {
	s := &signer{accessKey: keys[0], secretKey: keys[1], session: keys[2], region: region, service: service}
	return s.authorization(method, host, awsEscape(path, true), query, hexSum(body), headers, now)
}

// SignRequest signs a request as it is sent.
func SignRequest(keys [3]string, region, service string, request *http.Request, body []byte, now time.Time) error {
	return (&signer{accessKey: keys[0], secretKey: keys[1], session: keys[2], region: region, service: service}).sign(request, body, now)
}

// Clean removes the echoes of credentials.
func Clean(text string, values ...string) string { return newEchoes(values).cleanText(text) }

// WithoutParameter is withoutParameter.
var WithoutParameter = withoutParameter

// RetryAfter is retryAfter.
var RetryAfter = retryAfter

// ParseHead reports whether a head is taken.
func ParseHead(text []byte) error {
	_, err := parseHead(&access.Operation{Kind: access.KindHTTP, Head: text})
	return err
}

// NewDialer returns how a transport dials an opened address, and how its lane ends that.
func NewDialer(private netip.AddrPort) (dial func(ctx context.Context, network, host string) (net.Conn, error), end func()) {
	d := &dialer{guard: &guard{private: []netip.AddrPort{private}}}
	return d.DialContext, d.close
}
