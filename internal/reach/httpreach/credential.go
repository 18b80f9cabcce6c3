package httpreach

import (
	"context"
	"encoding/base64"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/flowhost/flowhost/run/access"
)

// credential is what a connection adds to each of its requests, with its secrets resolved. It
// lives as long as one operation.
type credential struct {
	headers               http.Header
	queryName, queryValue string
	signer                *signer
	hasToken              bool   // of OAuth 2.0, which is fetched before the first request
	token                 string //
	clientID, secret      string // for the token
	values                []string
}

// resolveCredential reads the secrets of a connection.
func (x *exchange) resolveCredential(ctx context.Context) (*credential, error) {
	c := &credential{headers: http.Header{}}
	if x.connection == nil {
		return c, nil
	}
	r := &resolving{ctx: ctx, x: x, credential: c}
	http := x.connection.HTTP
	for _, name := range slices.Sorted(maps.Keys(http.Headers)) {
		value := http.Headers[name]
		c.headers.Set(name, r.resolve(&value, value.Secret != ""))
	}
	if http.Auth != nil {
		r.auth(http.Auth)
	}
	if r.err != nil {
		return nil, r.err
	}
	for name, list := range c.headers {
		if !isToken(name) || !isHeaderValue(list[0]) {
			return nil, invalid("connection %s is wrong: its header %s has a name or value that no header may have", x.connection.Name, quoted(name))
		}
	}
	return c, nil
}

// resolving resolves values until one fails.
type resolving struct {
	ctx        context.Context
	x          *exchange
	credential *credential
	err        error
}

// resolve remembers the value if it is secret.
func (r *resolving) resolve(v *access.Value, secret bool) string {
	if r.err != nil {
		return ""
	}
	text, err := v.Resolve(r.ctx, r.x.client.config.Secrets, r.x.caller.Flow)
	if err != nil {
		r.err = err
		return ""
	}
	if secret {
		r.credential.values = append(r.credential.values, text)
	}
	return text
}

func (r *resolving) auth(auth *access.Auth) {
	c := r.credential
	switch auth.Kind {
	case access.AuthBasic:
		user, password := r.resolve(&auth.User, auth.User.Secret != ""), r.resolve(&auth.Password, true)
		pair := base64.StdEncoding.EncodeToString([]byte(user + ":" + password))
		c.values = append(c.values, pair)
		c.headers.Set("Authorization", "Basic "+pair)
	case access.AuthBearer:
		c.headers.Set("Authorization", "Bearer "+r.resolve(&auth.Token, true))
	case access.AuthHeader:
		c.headers.Set(auth.Name, r.resolve(&auth.Value, true))
	case access.AuthQuery:
		c.queryName, c.queryValue = auth.Name, r.resolve(&auth.Value, true)
		if hasParameter(r.x.target.Query, auth.Name) {
			r.err = invalid("the request's query parameter %s is filled by the connection: leave it out", quoted(auth.Name))
		}
	case access.AuthOAuth2:
		c.hasToken = true
		c.clientID, c.secret = r.resolve(&auth.ClientID, auth.ClientID.Secret != ""), r.resolve(&auth.ClientSecret, true)
	case access.AuthAWS:
		c.signer = &signer{
			accessKey: r.resolve(&auth.AccessKey, auth.AccessKey.Secret != ""), secretKey: r.resolve(&auth.SecretKey, true),
			session: r.resolve(&auth.SessionToken, true), region: auth.Region, service: auth.Service,
		}
	default:
		r.err = invalid("connection %s is wrong: auth of kind %s is unknown", r.x.connection.Name, quoted(auth.Kind))
	}
}

// apply adds the credential to a request of the connection's origin.
func (c *credential) apply(request *http.Request, body []byte, now time.Time) error {
	for name, list := range c.headers {
		request.Header[name] = list
	}
	if c.hasToken {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	if c.queryName != "" {
		if request.URL.RawQuery != "" {
			request.URL.RawQuery += "&"
		}
		request.URL.RawQuery += url.QueryEscape(c.queryName) + "=" + url.QueryEscape(c.queryValue)
	}
	if c.signer != nil {
		return c.signer.sign(request, body, now)
	}
	return nil
}

// hasParameter reports whether a query has a parameter, in whatever spelling.
func hasParameter(query, name string) bool { return withoutParameter(query, name) != query }

// withoutParameter removes a parameter from a query, and leaves all others as they are.
func withoutParameter(query, name string) string {
	if name == "" || query == "" {
		return query
	}
	return strings.Join(slices.DeleteFunc(strings.FieldsFunc(query, isSeparator), func(part string) bool {
		key, _, _ := strings.Cut(part, "=")
		plain, err := url.QueryUnescape(key)
		return err == nil && plain == name
	}), "&")
}

// isSeparator is that of servers: some take a semicolon, too.
func isSeparator(c rune) bool { return c == '&' || c == ';' }
