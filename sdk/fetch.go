package sdk

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
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
	URL    string // after redirects, without credentials
	Body   []byte
}

type requestHead struct {
	Connection string `json:"connection"`
	Method     string `json:"method"`
	URL        string `json:"url"`
	Headers    Header `json:"headers,omitempty"`
	Timeout    int64  `json:"timeout_ms,omitempty"`
	Idempotent bool   `json:"idempotency_key,omitempty"`
	Redirects  int    `json:"redirects,omitempty"`
}

type responseHead struct {
	Status  int    `json:"status"`
	Headers Header `json:"headers"`
	URL     string `json:"url"`
}

// Fetch implements Context.
func (c call) Fetch(connection string, r Request) (*Response, error) {
	if r.Method == "" {
		r.Method = "GET"
	}
	var head responseHead
	body, err := c.operate("http", requestHead{connection, r.Method, r.URL, r.Header, ceilMilliseconds(r.Timeout), r.Idempotent, r.Redirects}, r.Body, &head)
	if err != nil {
		return nil, err
	}
	return &Response{Status: head.Status, Header: head.Headers, URL: head.URL, Body: body}, nil
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
