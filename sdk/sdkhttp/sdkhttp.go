// Package sdkhttp gives plugins an *http.Client whose requests the host makes, so that
// libraries that speak HTTP work in a plugin. A plugin that makes a few requests itself is
// smaller with Fetch of [sdk.Context], which does not need net/http.
package sdkhttp

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
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

type requestHead struct {
	Connection string              `json:"connection"`
	Method     string              `json:"method"`
	URL        string              `json:"url"`
	Headers    map[string][]string `json:"headers,omitempty"`
	Timeout    int64               `json:"timeout_ms,omitempty"`
	Idempotent bool                `json:"idempotency_key,omitempty"`
}

type responseHead struct {
	Status  int         `json:"status"`
	Headers http.Header `json:"headers"`
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
	head := requestHead{Connection: t.Connection, Method: r.Method, URL: r.URL.String(), Idempotent: t.Idempotent, Headers: map[string][]string{}}
	for name, values := range r.Header {
		if !slices.Contains(own, http.CanonicalHeaderKey(name)) {
			head.Headers[name] = values
		}
	}
	if at, limited := r.Context().Deadline(); limited {
		head.Timeout = max(time.Until(at).Milliseconds(), 1)
	}
	reply, err := operator.Operate(r.Context(), "http", head, body)
	if err != nil {
		return nil, err
	}
	var response responseHead
	if err := reply.Decode(&response); err != nil {
		return nil, err
	}
	return &http.Response{
		Status: fmt.Sprintf("%d %s", response.Status, http.StatusText(response.Status)), StatusCode: response.Status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: response.Headers,
		Body: io.NopCloser(bytes.NewReader(reply.Body)), ContentLength: int64(len(reply.Body)), Request: r,
	}, nil
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
