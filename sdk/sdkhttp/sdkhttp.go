// Package sdkhttp gives plugins an *http.Client whose requests the host makes, so that
// libraries that speak HTTP work in a plugin. A plugin that makes a few requests itself is
// smaller with Fetch of [sdk.Context], which does not need net/http.
package sdkhttp

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/flowhost/flowhost/sdk"
	"github.com/flowhost/flowhost/sdk/internal/guest"
)

// maxBody is the largest body of a request that a host takes, in bytes.
const maxBody = 16 << 20

// Client makes requests by a connection of the flow: URLs may be relative to its base URL,
// and the host adds the credentials. The connection "" is the task's http grant, with whole
// URLs. Requests of several goroutines are under way at once. Errors wrap an
// *[sdk.OperationError]. The client ends with the call.
func Client(ctx sdk.Context, connection string) *http.Client {
	return &http.Client{Transport: &Transport{Context: ctx, Connection: connection}}
}

// Transport is the http.RoundTripper of a Client.
type Transport struct {
	Context    sdk.Context
	Connection string

	// Idempotent sends the idempotency key of the task run with each request, and lets the
	// host repeat it.
	Idempotent bool
}

// own are headers that belong to the host, and that libraries set nevertheless.
var own = []string{"Accept-Encoding", "Connection", "Content-Length", "Host", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade"}

// RoundTrip implements http.RoundTripper.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	operator, ok := t.Context.(guest.Operator)
	if !ok {
		return nil, errors.New("sdkhttp: the context is not one of a call")
	}
	body, err := bodyOf(r)
	if err != nil {
		return nil, err
	}
	headers := map[string][]string{}
	for name, values := range r.Header {
		if !slices.Contains(own, http.CanonicalHeaderKey(name)) {
			headers[name] = values
		}
	}
	var head guest.Head
	head.Text("connection", t.Connection)
	head.Text("method", cmp.Or(r.Method, http.MethodGet))
	head.Text("url", r.URL.String())
	head.Lists("headers", headers)
	head.Bool("idempotency_key", t.Idempotent)
	if at, limited := r.Context().Deadline(); limited {
		head.Int("timeout_ms", max(time.Until(at).Milliseconds(), 1))
	}
	reply, err := operator.Operate(r.Context(), "http", &head, body)
	if err != nil {
		return nil, err
	}
	response := &http.Response{
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{},
		Body: io.NopCloser(bytes.NewReader(reply.Body)), ContentLength: int64(len(reply.Body)), Request: r,
	}
	guest.Members(reply.Head, func(name string, value []byte) {
		switch name {
		case "status":
			response.StatusCode = int(guest.IntOf(value))
			response.Status = strconv.Itoa(response.StatusCode) + " " + http.StatusText(response.StatusCode)
		case "headers":
			guest.Members(value, func(name string, list []byte) {
				guest.Elements(list, func(value []byte) { response.Header.Add(name, guest.TextOf(value)) })
			})
		}
	})
	return response, nil
}

// bodyOf reads and closes the body of a request, as a transport must.
func bodyOf(r *http.Request) ([]byte, error) {
	if r.Body == nil {
		return nil, nil
	}
	defer r.Body.Close()
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err == nil && len(body) > maxBody {
		err = fmt.Errorf("sdkhttp: the body of the request has more than %d bytes", maxBody)
	}
	return body, err
}
