package httpreach

import (
	"context"
	"errors"
	"net/url"

	"github.com/flowhost/flowhost/internal/httprule"
	"github.com/flowhost/flowhost/run/access"
)

// proxy is an HTTP proxy, which is asked to CONNECT for https.
type proxy struct {
	url  *url.URL // with its user and password
	host string   // host:port
	own  bool     // the operator has named it
}

// parseProxy never repeats the text, which may have a password.
func parseProxy(text string) (*proxy, error) {
	wrong := errors.New("the URL of the proxy is not http://[user:password@]host[:port]")
	u, err := url.Parse(text)
	if err != nil {
		return nil, wrong
	}
	user := u.User
	u.User = nil
	t, err := httprule.ParseBase(u.String())
	if err != nil || t.Path != "/" {
		return nil, wrong
	}
	return &proxy{
		url:  &url.URL{Scheme: t.Scheme, User: user, Host: hostPort(t.Host, t.Port)},
		host: hostPort(t.Host, t.Port),
		own:  true,
	}, nil
}

// proxyOf returns the proxy of a request, nil for none. The operator's is a wall around all
// flows, which cannot name another one.
func (c *Client) proxyOf(ctx context.Context, caller *access.Caller, connection *access.Connection) (*proxy, error) {
	if connection == nil || connection.Proxy == nil {
		return c.proxy, nil
	}
	if c.proxy != nil && !connection.Operator {
		return nil, &access.Fault{
			Code:    access.CodeDenied,
			Message: "connection " + connection.Name + " refused: it names a proxy, but everything leaves this host through the operator's: remove proxy from the connection",
			Rule:    "proxy of the operator",
		}
	}
	text, err := connection.Proxy.Resolve(ctx, c.config.Secrets, caller.Flow)
	if err != nil {
		return nil, err
	}
	p, err := parseProxy(text)
	if err != nil {
		return nil, invalid("connection %s is wrong: %v", connection.Name, err)
	}
	p.own = connection.Operator
	return p, nil
}
