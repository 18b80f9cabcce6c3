package httpreach_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/flowhost/flowhost/internal/reach/httpreach"
	"github.com/flowhost/flowhost/run/access"
)

// special are addresses that are not global unicast, by what they are.
var special = map[string]string{
	"this host":                    "0.0.0.0",
	"this network":                 "0.1.2.3",
	"private 10":                   "10.0.0.1",
	"private 172":                  "172.16.0.1",
	"private 172, last":            "172.31.255.255",
	"private 192":                  "192.168.1.1",
	"CGNAT":                        "100.64.0.1",
	"CGNAT, last":                  "100.127.255.255",
	"loopback":                     "127.0.0.1",
	"loopback, last":               "127.255.255.255",
	"link-local":                   "169.254.0.1",
	"metadata":                     "169.254.169.254",
	"metadata of tasks":            "169.254.170.2",
	"protocol assignments":         "192.0.0.8",
	"documentation 1":              "192.0.2.1",
	"documentation 2":              "198.51.100.1",
	"documentation 3":              "203.0.113.1",
	"6to4 relay":                   "192.88.99.1",
	"AS112":                        "192.175.48.1",
	"benchmarking":                 "198.18.0.1",
	"benchmarking, last":           "198.19.255.255",
	"multicast":                    "224.0.0.1",
	"multicast, last":              "239.255.255.255",
	"reserved":                     "240.0.0.1",
	"broadcast":                    "255.255.255.255",
	"v6 unspecified":               "::",
	"v6 loopback":                  "::1",
	"v4-mapped loopback":           "::ffff:127.0.0.1",
	"v4-mapped private":            "::ffff:10.0.0.1",
	"v4-mapped metadata":           "::ffff:169.254.169.254",
	"v4-compatible":                "::10.0.0.1",
	"v4-translated":                "::ffff:0:a00:1",
	"NAT64 metadata":               "64:ff9b::a9fe:a9fe",
	"NAT64 loopback":               "64:ff9b::7f00:1",
	"NAT64 local":                  "64:ff9b:1::7f00:1",
	"6to4 loopback":                "2002:7f00:1::",
	"6to4 private":                 "2002:a00:1::1",
	"Teredo":                       "2001:0:7f00:1::1",
	"ORCHID":                       "2001:20::1",
	"v6 benchmarking":              "2001:2::1",
	"v6 documentation":             "2001:db8::1",
	"v6 documentation, new":        "3fff::1",
	"discard":                      "100::1",
	"ULA":                          "fc00::1",
	"metadata on ULA":              "fd00:ec2::254",
	"v6 link-local":                "fe80::1",
	"site-local":                   "fec0::1",
	"v6 multicast":                 "ff02::1",
	"segment routing":              "5f00::1",
	"outside of what is allocated": "4000::1",
}

func TestSpecialAddresses(t *testing.T) {
	t.Parallel()
	for name, text := range special {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ip := netip.MustParseAddr(text)
			if httpreach.IsPublic(ip) {
				t.Errorf("%s is taken for public", ip)
			}
			if httpreach.IsPublic(ip.Unmap().WithZone("lo")) {
				t.Errorf("%s with a zone is taken for public", ip)
			}
		})
	}
}

func TestPublicAddresses(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"1.1.1.1", "8.8.8.8", "172.15.0.1", "172.32.0.1", "100.128.0.1", "223.255.255.254", "::ffff:8.8.8.8", "2606:4700::1111", "2a00::1"} {
		if !httpreach.IsPublic(netip.MustParseAddr(text)) {
			t.Errorf("%s is refused", text)
		}
	}
}

// TestNamesOfSpecialAddresses resolves an allowed name to each of them.
func TestNamesOfSpecialAddresses(t *testing.T) {
	t.Parallel()
	for name, address := range special {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			r.policy.Grants.HTTP.Private, r.policy.Allow.HTTP.Private = nil, nil
			r.names.set(apiHost, address)
			f := wantFault(t, r.get(r.origin()+"/"), access.CodeDenied, "private address")
			if want := `private = ["` + netip.AddrPortFrom(netip.MustParseAddr(address).Unmap(), netip.MustParseAddrPort(r.address()).Port()).String() + `"]`; f.Add != want {
				t.Errorf("add %s, want %s", f.Add, want)
			}
			r.undialed()
		})
	}
}

// TestLiteralAddresses asks for each of them by itself, though a rule allows it.
func TestLiteralAddresses(t *testing.T) {
	t.Parallel()
	for name, address := range special {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			url := "http://" + netip.AddrPortFrom(netip.MustParseAddr(address), netip.MustParseAddrPort(r.address()).Port()).String() + "/"
			if strings.Contains(address, "ffff:") && !strings.Contains(address, "ffff:0:") {
				wantFault(t, r.get(url), access.CodeDenied, "canonical form")
			} else {
				grant := &access.HTTPGrant{Allow: []string{"GET " + url}}
				r.policy.Grants.HTTP, r.policy.Allow.HTTP = grant, grant
				wantFault(t, r.get(url), access.CodeDenied, "private address")
			}
			r.untouched()
		})
	}
}

// TestSpellingsOfAddresses has what is an address for some resolvers or parsers.
func TestSpellingsOfAddresses(t *testing.T) {
	t.Parallel()
	for _, host := range []string{
		"127.1", "127.0.1", "0x7f.1", "0x7f000001", "0177.0.0.1", "017700000001", "2130706433", "127.0.0.1.", "127.0.0.01", "0", "0x0",
		"[::ffff:7f00:1]", "[::127.0.0.1]", "[0:0:0:0:0:0:0:1]", "[::1%25lo]", "[::1%lo]", "[fe80::1%25lo]", "[::10.0.0.1]", "[::ffff:10.0.0.1]",
		"１２７.0.0.1", "127。0。0。1", "①27.0.0.1", "%31%32%37.0.0.1",
	} {
		t.Run(host, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			f := wantFault(t, r.get("http://"+host+":"+r.port+"/"), access.CodeDenied, "canonical form")
			if !strings.Contains(f.Message, "host") {
				t.Errorf("message %q", f.Message)
			}
			r.untouched()
		})
	}
}

// TestSocketCheck holds that the socket's own address is checked, whatever was checked before.
func TestSocketCheck(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	address := netip.MustParseAddrPort(r.address())
	_, err := httpreach.Connect(t.Context(), address)
	if fault, ok := errors.AsType[*access.Fault](err); !ok || fault.Code != access.CodeDenied {
		t.Errorf("got %v, want a denial", err)
	}
	conn, err := httpreach.Connect(t.Context(), address, address)
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
}

// TestEndOfDialer closes what net/http would still hold, and what is dialed too late.
func TestEndOfDialer(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	address := listener.Addr().String()
	dial, end := httpreach.NewDialer(netip.MustParseAddrPort(address))
	conn, err := dial(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	server, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	end()
	if _, err := io.Copy(io.Discard, server); err != nil {
		t.Errorf("the end of the network connection: %v", err)
	}
	if _, err := dial(t.Context(), "tcp", address); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a late dial: %v, want %v", err, net.ErrClosed)
	}
}

func TestPrivateByAddressAndPort(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		author, operator []string
		noBlock, want    bool
	}{
		"both":            {author: []string{"127.0.0.1:PORT"}, operator: []string{"127.0.0.1:PORT"}, want: true},
		"both, mapped":    {author: []string{"[::ffff:127.0.0.1]:PORT"}, operator: []string{"127.0.0.1:PORT"}, want: true},
		"author alone":    {author: []string{"127.0.0.1:PORT"}},
		"operator alone":  {operator: []string{"127.0.0.1:PORT"}},
		"no block":        {author: []string{"127.0.0.1:PORT"}, noBlock: true},
		"another port":    {author: []string{"127.0.0.1:1"}, operator: []string{"127.0.0.1:1"}},
		"another address": {author: []string{"127.0.0.2:PORT"}, operator: []string{"127.0.0.2:PORT"}},
		"different":       {author: []string{"127.0.0.1:PORT"}, operator: []string{"127.0.0.1:1"}},
		"address alone":   {author: []string{"127.0.0.1"}, operator: []string{"127.0.0.1"}},
		"prefix":          {author: []string{"127.0.0.0/8"}, operator: []string{"127.0.0.0/8"}},
		"wildcard":        {author: []string{"*"}, operator: []string{"*"}},
		"port zero":       {author: []string{"127.0.0.1:0"}, operator: []string{"127.0.0.1:0"}},
		"name":            {author: []string{"localhost:PORT"}, operator: []string{"localhost:PORT"}},
		"empty":           {author: []string{""}, operator: []string{""}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, connection := range []bool{false, true} {
				r := newRig(t, nil)
				with := func(list []string) []string {
					var all []string
					for _, text := range list {
						all = append(all, strings.Replace(text, "PORT", r.port, 1))
					}
					return all
				}
				c, head := (*access.Connection)(nil), fields{"url": r.origin() + "/"}
				if connection {
					c, head = r.connection(), fields{"url": "/"}
					c.Private = with(test.author)
				}
				r.policy.Grants.HTTP.Private = with(test.author)
				r.policy.Allow.HTTP.Private, r.policy.Allow.Private = with(test.operator), with(test.operator)
				if test.noBlock {
					r.policy.Allow = nil
				}
				answer := r.do(c, head, "")
				if test.want {
					wantStatus(t, answer, 200)
					continue
				}
				wantFault(t, answer, access.CodeDenied, "private address")
				r.undialed()
			}
		})
	}
}

// TestOperatorsConnection leads to loopback and private addresses of its own host alone.
func TestOperatorsConnection(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		private []string
		address string
		want    bool
	}{
		"own host":                 {address: "127.0.0.1", want: true},
		"own host, link-local":     {address: "169.254.169.254"},
		"own host, unspecified":    {address: "0.0.0.0"},
		"own host, multicast":      {address: "224.0.0.1"},
		"own host, NAT64":          {address: "64:ff9b::7f00:1"},
		"list has it":              {private: []string{"127.0.0.1:PORT"}, address: "127.0.0.1", want: true},
		"list has another address": {private: []string{"127.0.0.2:PORT"}, address: "127.0.0.1"},
		"list has another port":    {private: []string{"127.0.0.1:1"}, address: "127.0.0.1"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			r.names.set(apiHost, test.address)
			r.policy.Allow = nil // the connection is the operator's key
			c := r.connection()
			c.Operator, c.Private = true, nil
			for _, text := range test.private {
				c.Private = append(c.Private, strings.Replace(text, "PORT", r.port, 1))
			}
			answer := r.do(c, fields{"url": "/"}, "")
			if test.want {
				wantStatus(t, answer, 200)
				return
			}
			wantFault(t, answer, access.CodeDenied, "private address")
			r.undialed()
		})
	}
}

// TestAlternatingName answers an opened address and a refused one in turns.
func TestAlternatingName(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.server.Config.SetKeepAlivesEnabled(false)
	_, refused := serve(t, "127.0.0.2:"+r.port, nil)
	answers := []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("127.0.0.2")}
	n := 0
	r.names.table[apiHost] = func() []netip.Addr {
		n++
		return answers[n%2 : n%2+1]
	}
	const times = 10_000
	for i := range times {
		answer := r.get(r.origin() + "/")
		if i%2 == 0 {
			wantFault(t, answer, access.CodeDenied, "private address")
		} else {
			wantStatus(t, answer, 200)
		}
	}
	if refused.Load() != 0 || r.accepted.Load() != times/2 || r.names.lookups.Load() != times {
		t.Errorf("%d refused and %d opened addresses were dialed after %d lookups", refused.Load(), r.accepted.Load(), r.names.lookups.Load())
	}
}

func TestManyAddressesOnePrivate(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.names.set(apiHost, "127.0.0.1", "127.0.0.1", "127.0.0.1", "127.0.0.1", "10.0.0.1")
	wantFault(t, r.get(r.origin()+"/"), access.CodeDenied, "private address", "10.0.0.1")
	r.undialed()
}

// TestNextAddress tries the addresses of a name in turn.
func TestNextAddress(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	for _, list := range []*[]string{&r.policy.Grants.HTTP.Private, &r.policy.Allow.HTTP.Private} {
		*list = append(*list, "127.0.0.3:"+r.port)
	}
	r.names.set(apiHost, "127.0.0.3", "127.0.0.1")
	wantStatus(t, r.get(r.origin()+"/"), 200)
}

func TestSearchDomains(t *testing.T) {
	t.Parallel()
	var asked string
	r := newRig(t, nil)
	c, err := httpreach.New(httpreach.Config{Secrets: r.secrets, Resolver: resolverFunc(func(host string) { asked = host })})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	r.client = c
	wantFault(t, r.get(r.origin()+"/"), access.CodeUnreachable)
	if asked != apiHost+"." {
		t.Errorf("%q was looked up, want it without search domains", asked)
	}
}

type resolverFunc func(host string)

func (f resolverFunc) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	f(host)
	return nil, errors.New("no such host")
}
