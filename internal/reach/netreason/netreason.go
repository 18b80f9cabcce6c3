// Package netreason words errors of the network for guests: what went wrong, without the names
// and addresses that such errors quote.
package netreason

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"syscall"
)

// Of returns what a guest learns of an error.
func Of(err error) string {
	var (
		lookup  *net.DNSError
		unknown x509.UnknownAuthorityError
		other   x509.HostnameError
		invalid x509.CertificateInvalidError
		verify  *tls.CertificateVerificationError
		record  tls.RecordHeaderError
		alert   tls.AlertError
	)
	switch {
	case errors.As(err, &lookup):
		return "its name does not resolve"
	case errors.As(err, &unknown):
		return "its certificate is signed by an authority that the host does not know"
	case errors.As(err, &other):
		return "its certificate is for another name"
	case errors.As(err, &invalid), errors.As(err, &verify):
		return "its certificate is not valid"
	case errors.As(err, &record), errors.As(err, &alert):
		return "it does not answer in TLS as expected"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, net.ErrClosed):
		return "the connection broke"
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH):
		return "no route leads to it"
	}
	return "the server does not answer as expected"
}
