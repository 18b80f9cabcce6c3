package httpreach

import (
	"maps"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/flowhost/flowhost/internal/httprule"
	"github.com/flowhost/flowhost/run/access"
)

// Bounds of the headers of a request and of a response.
const (
	maxHeaderBytes  = 64 << 10
	maxHeaderValues = 256
)

// hostHeaders belong to the host, and so do all that begin with Proxy-. The last line has
// those by which some servers take another method, host or path than the rules were matched
// with.
var hostHeaders = []string{
	"Accept-Encoding", "Connection", "Content-Length", "Expect", "Host", "Http2-Settings", "Keep-Alive", "Te", "Traceparent",
	"Tracestate", "Trailer", "Transfer-Encoding", "Upgrade",
	"Forwarded", "X-Forwarded-Host", "X-Http-Method", "X-Http-Method-Override", "X-Method-Override", "X-Original-Url", "X-Rewrite-Url",
}

// removed are headers of a response that belong to one network connection, or would be a
// credential.
var removed = []string{
	"Connection", "Keep-Alive", "Set-Cookie", "Set-Cookie2", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

// portable headers accompany a redirect to another origin: none of them is a credential.
var portable = []string{
	"Accept", "Accept-Language", "Content-Language", "Content-Type", "If-Match", "If-Modified-Since", "If-None-Match",
	"If-Unmodified-Since", "Range", "Traceparent", "User-Agent",
}

// requestHeaders checks what a guest sends and adds what the host sends, except credentials.
func (x *exchange) requestHeaders() (http.Header, error) {
	all := http.Header{}
	owned := credentialHeaders(x.connection)
	values, size := 0, 0
	for _, name := range slices.Sorted(maps.Keys(x.head.Headers)) {
		list := x.head.Headers[name]
		canonical := textproto.CanonicalMIMEHeaderKey(name)
		if err := checkHeaderName(name, canonical, owned); err != nil {
			return nil, err
		}
		for _, value := range list {
			if !isHeaderValue(value) {
				return nil, invalid("the request's header %s has a control character in its value", canonical)
			}
			values, size = values+1, size+len(name)+len(value)
			all.Add(canonical, value)
		}
	}
	if values > maxHeaderValues || size > maxHeaderBytes {
		return nil, invalid("the request has more than %d headers, or more than %d bytes of them", maxHeaderValues, maxHeaderBytes)
	}
	if x.head.Idempotent {
		if all.Get("Idempotency-Key") != "" {
			return nil, invalid("the request has a header Idempotency-Key and asks for another one by idempotency_key: leave one out")
		}
		key := x.idempotencyKey()
		if !isHeaderValue(key) {
			return nil, invalid("the request's idempotency_key has a control character")
		}
		all.Set("Idempotency-Key", key)
	}
	if all.Get("User-Agent") == "" {
		all.Set("User-Agent", "flowhost")
	}
	if x.caller.Traceparent != "" {
		all.Set("Traceparent", x.caller.Traceparent)
	}
	return all, nil
}

func (x *exchange) idempotencyKey() string {
	if x.head.Key != "" {
		return x.head.Key
	}
	parts := []string{x.caller.Run, x.caller.Task, x.caller.Key, strconv.Itoa(x.op.Number)}
	for i, part := range parts {
		parts[i] = url.PathEscape(part)
	}
	return strings.Join(parts, "/")
}

// checkHeaderName refuses a header that is the host's. Servers of the CGI family read X_Y as X-Y.
func checkHeaderName(name, canonical string, owned []string) error {
	if !isToken(name) {
		return invalid("the request's header %s is not a name of a header", quoted(name))
	}
	plain := textproto.CanonicalMIMEHeaderKey(strings.ReplaceAll(canonical, "_", "-"))
	if strings.HasPrefix(plain, "Proxy-") || slices.Contains(hostHeaders, plain) {
		return invalid("the request's header %s belongs to the host: leave it out", canonical)
	}
	if slices.Contains(owned, plain) {
		return invalid("the request's header %s is filled by the connection: leave it out", canonical)
	}
	return nil
}

// credentialHeaders are the canonical names of headers that a connection fills.
func credentialHeaders(connection *access.Connection) []string {
	if connection == nil {
		return nil
	}
	var names []string
	for name := range connection.HTTP.Headers {
		names = append(names, name)
	}
	if auth := connection.HTTP.Auth; auth != nil {
		switch auth.Kind {
		case access.AuthHeader:
			names = append(names, auth.Name)
		case access.AuthQuery:
		case access.AuthAWS:
			names = append(names, "Authorization", "X-Amz-Date", "X-Amz-Security-Token", "X-Amz-Content-Sha256")
		default:
			names = append(names, "Authorization")
		}
	}
	for i, name := range names {
		names[i] = textproto.CanonicalMIMEHeaderKey(strings.ReplaceAll(name, "_", "-"))
	}
	return names
}

// isToken is that of RFC 9110, section 5.6.2.
func isToken(name string) bool {
	for i := range len(name) {
		c := name[i]
		if (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return name != ""
}

func isHeaderValue(value string) bool {
	for i := range len(value) {
		if c := value[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

// acrossOrigins are the headers that accompany a redirect to another origin.
func acrossOrigins(headers http.Header) http.Header {
	kept := http.Header{}
	for _, name := range portable {
		if list := headers[name]; list != nil {
			kept[name] = list
		}
	}
	return kept
}

// responseHeaders are those that a guest gets. The length of a body is that of the answer's,
// which may be another one than was sent.
func (x *exchange) responseHeaders(name string, target *httprule.Target, headers http.Header, body bool) (map[string][]string, error) {
	kept := map[string][]string{}
	values := 0
	for key, list := range headers {
		if values += len(list); values > maxHeaderValues {
			return nil, tooLarge(name, "the response has more than "+strconv.Itoa(maxHeaderValues)+" headers")
		}
		if slices.Contains(removed, key) || strings.HasPrefix(key, "Proxy-") || body && key == "Content-Length" {
			continue
		}
		clean := make([]string, 0, len(list))
		for _, value := range list {
			// Cleaned first: a URL in its canonical form escapes a credential in another way.
			if shown, ok := x.cover.header(key, x.echoes.cleanText(value), target); ok {
				clean = append(clean, x.echoes.cleanText(shown))
			}
		}
		if key = x.echoes.cleanText(key); len(clean) > 0 && !x.cover.hides(key) {
			kept[key] = clean
		}
	}
	return kept, nil
}
