package messages

import (
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/flowhost/flowhost/bus/internal/ops"
	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/run/access"
)

// Bounds of the headers of one message.
const (
	MaxHeaders     = 64      // values
	MaxHeaderBytes = 8 << 10 // of names and values
)

// headerTrace connects a message with the trace of its run.
// Source: W3C Trace Context, section "Traceparent Header".
const headerTrace = "traceparent"

// hostHeaders are headers that no guest sets, in lower case. Clients of NATS take status and
// description for those of the protocol: a message with them would pass for a message of the
// server, and never reach a consumer of a stream.
var hostHeaders = map[string]bool{headerTrace: true, "tracestate": true, "status": true, "description": true, "reply-to": true}

// hostPrefixes begin the names of such headers, in lower case.
var hostPrefixes = []string{"nats-", "fh-"}

// header checks the headers of a guest and adds those of the host.
func header(kind string, given map[string][]string, caller *access.Caller) (nats.Header, *access.Fault) {
	h := make(nats.Header, len(given)+2)
	count, size := 0, 0
	for name, values := range given {
		if why := checkName(name); why != "" {
			return nil, ops.Invalid("%s failed: %s", kind, why)
		}
		for _, value := range values {
			count++
			size += len(name) + len(value) + len(": \r\n")
			if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
				return nil, ops.Invalid("%s failed: header %s has a line break or another control character in its value", kind, name)
			}
		}
		h[name] = values
	}
	if count > MaxHeaders || size > MaxHeaderBytes {
		return nil, ops.TooLarge("%s failed: there are %d headers with %d bytes, and %d with %d are the most: use the body", kind, count, size, MaxHeaders, MaxHeaderBytes)
	}
	h[run.HeaderHops] = []string{strconv.Itoa(caller.Hops + 1)}
	if caller.Traceparent != "" {
		h[headerTrace] = []string{caller.Traceparent}
	}
	return h, nil
}

// checkName reports why a guest may not set a header, "" when it may.
// Source: RFC 9110, section 5.6.2, for the characters of a name.
func checkName(name string) string {
	if name == "" || len(name) > MaxSubject {
		return "a header has no name, or one longer than 256 bytes"
	}
	for _, c := range []byte(name) {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return "the name of a header has a character that is not allowed there"
		}
	}
	lower := strings.ToLower(name)
	own := hostHeaders[lower]
	for _, prefix := range hostPrefixes {
		own = own || strings.HasPrefix(lower, prefix)
	}
	if own {
		return "header " + name + " belongs to the host: leave it out"
	}
	return ""
}
