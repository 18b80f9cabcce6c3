package netreason_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/flowhost/flowhost/internal/reach/netreason"
)

func TestOf(t *testing.T) {
	t.Parallel()
	at := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 7), Port: 443}
	for name, tt := range map[string]struct {
		err  error
		want string
	}{
		"lookup":      {&net.DNSError{Err: "no such host", Name: "db.internal"}, "its name does not resolve"},
		"refused":     {&net.OpError{Op: "dial", Addr: at, Err: syscall.ECONNREFUSED}, "connection refused"},
		"no route":    {&net.OpError{Op: "dial", Addr: at, Err: syscall.EHOSTUNREACH}, "no route leads to it"},
		"reset":       {&net.OpError{Op: "read", Addr: at, Err: syscall.ECONNRESET}, "the connection broke"},
		"end":         {fmt.Errorf("db.internal: %w", io.ErrUnexpectedEOF), "the connection broke"},
		"authority":   {&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}, "its certificate is signed by an authority that the host does not know"},
		"name":        {x509.HostnameError{Certificate: &x509.Certificate{}, Host: "db.internal"}, "its certificate is for another name"},
		"certificate": {x509.CertificateInvalidError{Reason: x509.Expired, Detail: "db.internal"}, "its certificate is not valid"},
		"protocol":    {tls.RecordHeaderError{Msg: "db.internal"}, "it does not answer in TLS as expected"},
		"other":       {errors.New("db.internal said something"), "the server does not answer as expected"},
	} {
		got := netreason.Of(tt.err)
		if got != tt.want || strings.Contains(got, "db.internal") || strings.Contains(got, "192.0.2.7") {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}
