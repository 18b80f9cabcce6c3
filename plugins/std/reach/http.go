package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"mime"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/flowhost/flowhost/sdk"
)

// Request is an HTTP request.
type Request struct {
	Connection string            `json:"connection,omitempty"` // name of one that is granted; without it, url is whole and the http grant decides
	Method     string            `json:"method,omitempty"`     // default GET, or POST with a body
	URL        string            `json:"url"`
	Query      map[string]any    `json:"query,omitempty"` // added to url: texts, numbers, bools, or lists of these
	Headers    map[string]string `json:"headers,omitempty"`
	JSON       any               `json:"json,omitempty"`       // body, encoded as JSON
	Body       string            `json:"body,omitempty"`       // body, as it is
	Timeout    string            `json:"timeout,omitempty"`    // "10s"; default: what is left of the attempt
	Expect     []int             `json:"expect,omitempty"`     // statuses that are no failure; default 200 to 299
	As         string            `json:"as,omitempty"`         // form of the answer's body: "json", "text", "base64"; default: what its type says
	Idempotent bool              `json:"idempotent,omitempty"` // sends a key by which the server recognizes a retry, and lets the host repeat the request
	Redirects  int               `json:"redirects,omitempty"`  // that are followed, as far as the flow allows
}

// Response is the answer to a Request.
type Response struct {
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers"` // names in lower case; several values are joined by ", "
	Body    any               `json:"body"`
}

func request(ctx sdk.Context, in Request) (Response, error) {
	r, err := in.build()
	if err != nil {
		return Response{}, err
	}
	answer, err := ctx.Fetch(in.Connection, r)
	if err != nil {
		return Response{}, err
	}
	if !slices.Contains(in.Expect, answer.Status) {
		if err := answer.OK(); err != nil {
			return Response{}, err
		}
		if len(in.Expect) > 0 {
			return Response{}, sdk.Fail("unexpected_status", "%s answered %d, which expect does not name", answer.URL, answer.Status)
		}
	}
	out := Response{Status: answer.Status, Headers: map[string]string{}}
	for name, values := range answer.Header {
		out.Headers[strings.ToLower(name)] = strings.Join(values, ", ")
	}
	out.Body, err = decode(answer, in.As)
	return out, err
}

// build makes the request of the SDK.
func (in *Request) build() (sdk.Request, error) {
	r := sdk.Request{Method: strings.ToUpper(in.Method), URL: in.URL, Header: sdk.Header{}, Idempotent: in.Idempotent, Redirects: in.Redirects}
	var err error
	if r.URL, err = withQuery(in.URL, in.Query); err != nil {
		return r, err
	}
	if in.Timeout != "" {
		if r.Timeout, err = time.ParseDuration(in.Timeout); err != nil || r.Timeout <= 0 {
			return r, sdk.Fail("input", "timeout %q is not a duration such as \"10s\"", in.Timeout)
		}
	}
	for name, value := range in.Headers {
		r.Header[name] = []string{value}
	}
	switch {
	case in.JSON != nil && in.Body != "":
		return r, sdk.Fail("input", "json and body exclude each other: pass one of them")
	case in.JSON != nil:
		if r.Body, err = json.Marshal(in.JSON); err != nil {
			return r, err
		}
		if r.Header.Get("Content-Type") == "" {
			r.Header["Content-Type"] = []string{"application/json"}
		}
	case in.Body != "":
		r.Body = []byte(in.Body)
	}
	if r.Method == "" && len(r.Body) > 0 {
		r.Method = "POST"
	}
	if !slices.Contains([]string{"", "json", "text", "base64"}, in.As) {
		return r, sdk.Fail("input", "as is %q, and may be \"json\", \"text\" or \"base64\"", in.As)
	}
	return r, nil
}

// withQuery adds parameters to a URL.
func withQuery(address string, query map[string]any) (string, error) {
	if len(query) == 0 {
		return address, nil
	}
	values := url.Values{}
	for name, value := range query {
		all, ok := value.([]any)
		if !ok {
			all = []any{value}
		}
		for _, one := range all {
			text, ok := scalar(one)
			if !ok {
				return "", sdk.Fail("input", "query.%s is neither a text, a number nor a bool, nor a list of these", name)
			}
			values.Add(name, text)
		}
	}
	base, fragment, _ := strings.Cut(address, "#")
	between := "?"
	if strings.Contains(base, "?") {
		between = "&"
	}
	if address = base + between + values.Encode(); fragment != "" {
		address += "#" + fragment
	}
	return address, nil
}

// scalar is a text, a number or a bool as a text.
func scalar(value any) (string, bool) {
	switch v := value.(type) {
	case string:
		return v, true
	case bool:
		return strconv.FormatBool(v), true
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), true
	}
	return "", false
}

// decode is the body of an answer in a form; "" is that of its type.
func decode(r *sdk.Response, form string) (any, error) {
	if form == "" {
		form = formOf(r)
	}
	switch form {
	case "json":
		if len(r.Body) == 0 {
			return nil, nil
		}
		if !json.Valid(r.Body) {
			return nil, sdk.Fail("not_json", "%s answered with something else than JSON: %.200q", r.URL, r.Body)
		}
		return json.RawMessage(r.Body), nil
	case "text":
		return strings.ToValidUTF8(string(r.Body), "\uFFFD"), nil
	}
	return base64.StdEncoding.EncodeToString(r.Body), nil
}

func formOf(r *sdk.Response) string {
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case media == "application/json" || strings.HasSuffix(media, "+json"):
		return "json"
	case utf8.Valid(r.Body):
		return "text"
	}
	return "base64"
}

// onPage names the page at which pages failed, and keeps what is known of the failure.
func onPage(n int, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("page %d: %w", n, err)
}
