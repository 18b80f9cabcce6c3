package httpreach

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// signer signs requests as the AWS General Reference says, "Signature Version 4 signing
// process".
type signer struct {
	accessKey, secretKey, session string
	region, service               string
}

const amzTime = "20060102T150405Z"

// sign adds the headers of a signature. It is the last change of a request.
func (s *signer) sign(request *http.Request, body []byte, now time.Time) error {
	// Servers disagree about characters that may stay as they are, so none does.
	request.URL.RawPath = awsEscape(request.URL.Path, true)
	payload := hexSum(body)
	headers := request.Header
	headers.Set("X-Amz-Date", now.UTC().Format(amzTime))
	if s.session != "" {
		headers.Set("X-Amz-Security-Token", s.session)
	}
	path := request.URL.EscapedPath()
	if s.service == "s3" {
		headers.Set("X-Amz-Content-Sha256", payload)
	} else {
		path = awsEscape(path, true) // all other services encode twice
	}
	headers.Set("Authorization", s.authorization(request.Method, request.URL.Host, path, request.URL.RawQuery, payload, headers, now))
	return nil
}

// authorization is the header of a request whose path is encoded as it is signed. All headers
// are signed except those that a proxy may change.
func (s *signer) authorization(method, host, path, query, payload string, headers http.Header, now time.Time) string {
	lines := []string{"host:" + host}
	for name, values := range headers {
		switch name {
		case "Accept-Encoding", "Authorization", "User-Agent", "Traceparent":
			continue
		}
		trimmed := make([]string, len(values))
		for i, v := range values {
			trimmed[i] = strings.Join(strings.Fields(v), " ")
		}
		lines = append(lines, strings.ToLower(name)+":"+strings.Join(trimmed, ","))
	}
	slices.SortFunc(lines, func(a, b string) int { return strings.Compare(headerName(a), headerName(b)) })
	names := make([]string, len(lines))
	for i, line := range lines {
		names[i] = headerName(line)
	}
	signed := strings.Join(names, ";")
	canonical := strings.Join([]string{method, path, canonicalQuery(query), strings.Join(lines, "\n") + "\n", signed, payload}, "\n")
	day := now.UTC().Format("20060102")
	scope := strings.Join([]string{day, s.region, s.service, "aws4_request"}, "/")
	text := strings.Join([]string{"AWS4-HMAC-SHA256", now.UTC().Format(amzTime), scope, hexSum([]byte(canonical))}, "\n")
	key := []byte("AWS4" + s.secretKey)
	for _, part := range []string{day, s.region, s.service, "aws4_request"} {
		key = sum(key, part)
	}
	return "AWS4-HMAC-SHA256 Credential=" + s.accessKey + "/" + scope + ", SignedHeaders=" + signed + ", Signature=" + hex.EncodeToString(sum(key, text))
}

func headerName(line string) string {
	name, _, _ := strings.Cut(line, ":")
	return name
}

// canonicalQuery sorts parameters by their encoded names and values.
func canonicalQuery(query string) string {
	type pair struct{ name, value string }
	var pairs []pair
	for part := range strings.SplitSeq(query, "&") {
		if part == "" {
			continue
		}
		name, value, _ := strings.Cut(part, "=")
		pairs = append(pairs, pair{reescape(name), reescape(value)})
	}
	slices.SortFunc(pairs, func(a, b pair) int {
		if a.name != b.name {
			return strings.Compare(a.name, b.name)
		}
		return strings.Compare(a.value, b.value)
	})
	parts := make([]string, len(pairs))
	for i, p := range pairs {
		parts[i] = p.name + "=" + p.value
	}
	return strings.Join(parts, "&")
}

func reescape(text string) string {
	if plain, err := url.QueryUnescape(text); err == nil {
		text = plain
	}
	return awsEscape(text, false)
}

// awsEscape encodes everything but the unreserved characters of RFC 3986.
func awsEscape(text string, slashes bool) string {
	const digits = "0123456789ABCDEF"
	var out strings.Builder
	for i := range len(text) {
		c := text[i]
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-._~", c) >= 0 || slashes && c == '/' {
			out.WriteByte(c)
			continue
		}
		out.WriteByte('%')
		out.WriteByte(digits[c>>4])
		out.WriteByte(digits[c&15])
	}
	return out.String()
}

func sum(key []byte, text string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

func hexSum(text []byte) string {
	digest := sha256.Sum256(text)
	return hex.EncodeToString(digest[:])
}
