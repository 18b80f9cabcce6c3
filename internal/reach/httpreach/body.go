package httpreach

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/flowhost/flowhost/run/access"
)

// maxOverhead is how much longer than its content a body in gzip may be.
const maxOverhead = 64 << 10

// readBody reads a response's body, decoded, up to a number of bytes. The error is a fault or
// that of the network.
func readBody(target string, response *http.Response, most int64, echoes *echoes) ([]byte, error) {
	if response.Request.Method == http.MethodHead {
		return nil, nil
	}
	encoding := strings.ToLower(strings.TrimSpace(strings.Join(response.Header["Content-Encoding"], ",")))
	bound := fmt.Sprintf("the body of the response has more than %d bytes: raise max_body", most)
	switch {
	case encoding == "gzip" || encoding == "x-gzip":
		return readGzip(target, response, most, bound)
	case encoding != "" && encoding != "identity" && len(echoes.forms) > 0:
		// A credential could be echoed in it unseen.
		return nil, &access.Fault{
			Code:    access.CodeRefused,
			Message: fmt.Sprintf("%s failed: the server encoded the body as %s, which it was not asked for", target, quoted(encoding)),
			Target:  target,
		}
	case response.ContentLength > most:
		return nil, tooLarge(target, bound)
	}
	body, err := readUpTo(response.Request.Context(), response.Body, most, max(response.ContentLength, 0))
	if errors.Is(err, errTooLong) {
		return nil, tooLarge(target, bound)
	}
	return body, err
}

func readGzip(target string, response *http.Response, most int64, bound string) ([]byte, error) {
	limited := &io.LimitedReader{R: response.Body, N: most + maxOverhead}
	packed := bufio.NewReader(limited)
	if _, err := packed.Peek(1); err == io.EOF {
		return nil, nil
	}
	reader, err := gzip.NewReader(packed)
	var body []byte
	if err == nil {
		body, err = readUpTo(response.Request.Context(), reader, most, 0)
	}
	_, corrupt := errors.AsType[flate.CorruptInputError](err)
	switch {
	case err == nil:
		response.Header.Del("Content-Encoding")
		return body, nil
	case errors.Is(err, errTooLong), limited.N <= 0:
		return nil, tooLarge(target, bound)
	case corrupt, errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum):
		return nil, &access.Fault{Code: access.CodeRefused, Message: target + " failed: the body of the response is not gzip, as its header says", Target: target, Retryable: true}
	}
	return nil, err
}

// maxHint bounds the memory that a server gets by announcing a long body.
const maxHint = 1 << 20

var errTooLong = errors.New("too long")

// readUpTo reads to the end, or fails with errTooLong. The size is a hint. What it returns is
// reserved.
func readUpTo(ctx context.Context, from io.Reader, most, size int64) ([]byte, error) {
	var out bytes.Buffer
	out.Grow(int(min(size, most, maxHint)) + bytes.MinRead)
	counted := &reserved{ctx: ctx, from: io.LimitReader(from, most+1)}
	n, err := out.ReadFrom(counted)
	if n > most {
		err = errTooLong
	}
	if err != nil {
		access.Reserve(ctx, -counted.bytes)
		return nil, err
	}
	return out.Bytes(), nil
}

// reserved reserves room for what it reads: many bodies at once are bounded together.
type reserved struct {
	ctx   context.Context
	from  io.Reader
	bytes int
}

// Read implements io.Reader.
func (r *reserved) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	if n > 0 && !access.Reserve(r.ctx, n) {
		return 0, access.NoRoom()
	}
	r.bytes += n
	return n, err
}
