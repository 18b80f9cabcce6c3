package sdk

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/flowhost/flowhost/sdk/internal/guest"
)

// Header is the headers of a message, by their names as in http.Header.
type Header map[string][]string

// Get returns the first value of a header, "" when there is none. Case does not matter.
func (h Header) Get(name string) string {
	for n, values := range h {
		if strings.EqualFold(n, name) && len(values) > 0 {
			return values[0]
		}
	}
	return ""
}

// Request is an HTTP request. Only URL is required.
type Request struct {
	Method  string // default GET
	URL     string // below the connection's base URL, or whole without a connection
	Header  Header
	Body    []byte
	Timeout time.Duration // default: the time that is left of the attempt

	// Idempotent sends a key that is the same for each attempt of the task run, so that the
	// other side can recognize a repetition, and lets the host repeat the request.
	Idempotent bool

	Redirects int // that are followed, as far as the flow allows; default none
}

// Response is the answer to a Request.
type Response struct {
	Status int
	Header Header
	URL    string // after redirects; below the connection's base URL, or whole without a connection
	Body   []byte
}

var _ = guest.Rehearse(func(c *guest.Call) {
	if r, err := (call{c}).Fetch("rehearsal", Request{URL: "/", Header: Header{"Accept": {"*/*"}}}); err == nil {
		var body map[string]any
		_ = r.JSON(&body) // for what it touches
	}
})

// Fetch implements Context.
func (c call) Fetch(connection string, r Request) (*Response, error) {
	if r.Method == "" {
		r.Method = "GET"
	}
	var head guest.Head
	head.Text("connection", connection)
	head.Text("method", r.Method)
	head.Text("url", r.URL)
	head.Lists("headers", r.Header)
	head.Int("timeout_ms", ceilMilliseconds(r.Timeout))
	head.Bool("idempotency_key", r.Idempotent)
	head.Int("redirects", int64(r.Redirects))
	response := new(Response)
	var err error
	response.Body, err = c.operate("http", &head, r.Body, response.member)
	if err != nil {
		return nil, err
	}
	return response, nil
}

// member takes a member of the head of the answer.
func (r *Response) member(name string, value []byte) {
	switch name {
	case "status":
		r.Status = int(guest.IntOf(value))
	case "url":
		r.URL = guest.TextOf(value)
	case "headers":
		r.Header = Header{}
		guest.Members(value, func(name string, list []byte) {
			guest.Elements(list, func(value []byte) { r.Header[name] = append(r.Header[name], guest.TextOf(value)) })
		})
	}
}

// OK returns an error for a status that is not a success: one that may heal, such as 429
// and 503, is retryable, after the time that the answer states.
func (r *Response) OK() error {
	if r.Status >= 200 && r.Status < 300 {
		return nil
	}
	e := &Error{Code: fmt.Sprintf("http_%d", r.Status), Message: fmt.Sprintf("%s answered %d: %s", r.URL, r.Status, excerpt(r.Body))}
	switch r.Status {
	case 408, 425, 429, 500, 502, 503, 504:
		e.Retryable = true
		e.RetryAfter = retryAfter(r.Header.Get("Retry-After"))
	}
	return e
}

// retryAfter is the delay that a header states in seconds; 0 for any other form.
func retryAfter(text string) time.Duration {
	if seconds, err := time.ParseDuration(text + "s"); err == nil {
		return max(seconds, 0)
	}
	return 0
}

// excerpt is the beginning of a body, for a message.
func excerpt(body []byte) string {
	const most = 200
	text := strings.ToValidUTF8(strings.Join(strings.Fields(string(body[:min(len(body), most)])), " "), "�")
	if len(body) > most {
		text += " …"
	}
	return text
}

// JSON decodes the body of a successful response into v. It fails as OK does.
func (r *Response) JSON(v any) error {
	if err := r.OK(); err != nil {
		return err
	}
	if err := json.Unmarshal(r.Body, v); err != nil {
		return fmt.Errorf("%s answered with something else than the expected JSON: %w", r.URL, err)
	}
	return nil
}
