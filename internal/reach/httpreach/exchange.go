package httpreach

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/flowhost/flowhost/internal/httprule"
	"github.com/flowhost/flowhost/internal/reach/gate"
	"github.com/flowhost/flowhost/run/access"
)

// exchange is one operation under way.
type exchange struct {
	client     *Client
	caller     *access.Caller
	connection *access.Connection // nil: the grant
	op         *access.Operation
	head       *head
	permit     *permit
	cover      *cover
	target     *httprule.Target
	headers    http.Header // without credentials
	lane       *lane
	credential *credential
	echoes     *echoes
	kept       int // bytes that are reserved for the last response
}

// result is a response that was read to its end.
type result struct {
	status  int
	headers map[string][]string
	header  http.Header // as the server sent them
	body    []byte
	url     string
}

// perform sends an operation that is allowed.
func (x *exchange) perform(ctx context.Context) (access.Answer, error) {
	if x.head.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, x.head.Timeout)
		defer cancel()
	}
	g := x.client.gates.Take(gate.KeyOf(x.connection, x.caller.Flow))
	defer x.client.gates.Give(g)
	if fault := g.Enter(ctx, x.caller.Flow); fault != nil {
		return access.Answer{}, fault
	}
	defer g.Leave()
	var err error
	if x.credential, err = x.resolveCredential(ctx); err != nil {
		return access.Answer{}, err
	}
	x.echoes = newEchoes(x.credential.values)
	r, err := x.withRetries(ctx, g)
	if err != nil {
		return access.Answer{}, x.cleanFault(ctx, err)
	}
	head, err := json.Marshal(answerHead{Status: r.status, Headers: r.headers, URL: r.url})
	if err != nil {
		return access.Answer{}, err
	}
	return access.Answer{Head: head, Body: r.body}, nil
}

// cleanFault removes credentials that a server has placed in an error or a redirect.
func (x *exchange) cleanFault(ctx context.Context, err error) error {
	fault := *networkFault(ctx, describe(x.head.Method, x.target), err)
	if fault.Inside != nil {
		inside := *fault.Inside
		x.cleanTexts(&inside)
		fault.Inside = &inside
	}
	x.cleanTexts(&fault)
	return &fault
}

func (x *exchange) cleanTexts(f *access.Fault) {
	for _, text := range []*string{&f.Message, &f.Target, &f.Rule, &f.Add, &f.Detail} {
		*text = x.echoes.cleanText(*text)
	}
}

// once tries a request with its redirects. A token that is refused is replaced once.
func (x *exchange) once(ctx context.Context) (*result, error) {
	ctx, cancel := context.WithTimeout(ctx, tryTimeout(x.connection))
	defer cancel()
	if !x.credential.hasToken {
		return x.follow(ctx)
	}
	if err := x.useToken(ctx, ""); err != nil {
		return nil, err
	}
	used := x.credential.token
	r, err := x.follow(ctx)
	if err != nil || r.status != http.StatusUnauthorized {
		return r, err
	}
	if err := x.useToken(ctx, used); err != nil {
		return nil, err
	}
	return x.follow(ctx)
}

// follow sends a request and what it is redirected to.
func (x *exchange) follow(ctx context.Context) (*result, error) {
	method, target, headers, body := x.head.Method, x.target, x.headers, x.op.Body
	most := x.permit.redirects
	if x.head.Redirects != nil {
		most = min(most, *x.head.Redirects)
	}
	for hop := 0; ; hop++ {
		response, err := x.send(ctx, method, target, headers, body)
		if err != nil {
			return nil, err
		}
		location := response.Header.Get("Location")
		if most == 0 || location == "" || !isRedirect(response.StatusCode) {
			return x.read(method, target, response)
		}
		_ = response.Body.Close()
		if hop == most {
			return nil, &access.Fault{
				Code: access.CodeDenied, Message: fmt.Sprintf("%s refused: it leads to more than %d redirects", describe(x.head.Method, x.target), most),
				Target: describe(method, target), Rule: "redirects",
			}
		}
		next, err := x.redirect(target, location)
		if err != nil {
			return nil, refusedTarget("redirect of "+describe(method, target), err)
		}
		method, body = redirectMethod(method, response.StatusCode, body)
		if err := x.permit.check(method, next); err != nil {
			return nil, err
		}
		if !next.SameOrigin(target) {
			headers = acrossOrigins(headers)
		}
		if len(body) == 0 {
			headers = headers.Clone()
			headers.Del("Content-Type")
		}
		target = next
	}
}

func isRedirect(status int) bool {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	}
	return false
}

// redirectMethod is that of the Fetch Standard, "HTTP-redirect fetch".
func redirectMethod(method string, status int, body []byte) (string, []byte) {
	toGet := status == http.StatusSeeOther && method != http.MethodHead ||
		(status == http.StatusMovedPermanently || status == http.StatusFound) && method == http.MethodPost
	if toGet {
		return http.MethodGet, nil
	}
	return method, body
}

// redirect is the canonical target of a Location header, without an echoed credential.
func (x *exchange) redirect(from *httprule.Target, location string) (*httprule.Target, error) {
	base, err := url.Parse(from.URL())
	if err != nil {
		return nil, err
	}
	location, _, _ = strings.Cut(location, "#")
	ref, err := url.Parse(location)
	if err != nil {
		return nil, errors.New("its Location is not a URL")
	}
	to := base.ResolveReference(ref)
	to.RawQuery = withoutParameter(to.RawQuery, x.credential.queryName)
	return httprule.ParseTarget(to.String())
}

// send makes one round trip under the policy that the target was checked with.
func (x *exchange) send(ctx context.Context, method string, target *httprule.Target, headers http.Header, body []byte) (*http.Response, error) {
	request, err := http.NewRequestWithContext(withTry(ctx), method, target.URL(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header = headers.Clone()
	request.Header.Set("Accept-Encoding", "gzip")
	if err := x.credential.apply(request, body, x.client.now()); err != nil {
		return nil, err
	}
	response, err := x.lane.transport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode == http.StatusSwitchingProtocols {
		_ = response.Body.Close()
		return nil, errors.New("the server switched to another protocol")
	}
	return response, nil
}

func (x *exchange) read(method string, target *httprule.Target, response *http.Response) (*result, error) {
	defer response.Body.Close()
	name := describe(method, target)
	access.Reserve(response.Request.Context(), -x.kept) // of an earlier try
	x.kept = 0
	body, err := readBody(name, response, x.permit.maxBody, x.echoes)
	if err != nil {
		return nil, err
	}
	x.kept = len(body)
	headers, err := x.responseHeaders(name, target, response.Header, method != http.MethodHead)
	if err != nil {
		return nil, err
	}
	return &result{
		status: response.StatusCode, headers: headers, header: response.Header,
		body: x.echoes.clean(body), url: x.echoes.cleanText(x.cover.url(target)),
	}, nil
}
