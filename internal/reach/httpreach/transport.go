package httpreach

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/flowhost/flowhost/run/access"
)

// maxPEM bounds a file of certificates.
const maxPEM = 1 << 20

// newTransport has nothing from the environment.
func newTransport(resolver Resolver, connection *access.Connection, permit *permit, proxy *proxy) (*http.Transport, *dialer, error) {
	config, err := tlsConfig(connection)
	if err != nil {
		return nil, nil, err
	}
	guard := permit.guard
	dialer := &dialer{resolver: resolver, guard: &guard}
	transport := &http.Transport{
		DialContext:            dialer.DialContext,
		TLSClientConfig:        config,
		TLSHandshakeTimeout:    dialTimeout,
		ForceAttemptHTTP2:      true,
		DisableCompression:     true, // bodies are decoded below their bound
		MaxResponseHeaderBytes: maxHeaderBytes,
		MaxIdleConns:           access.DefaultConcurrency,
		MaxIdleConnsPerHost:    access.DefaultConcurrency,
		IdleConnTimeout:        idleTimeout,
	}
	if proxy != nil {
		transport.Proxy = http.ProxyURL(proxy.url)
		dialer.only = proxy.host
		if proxy.own {
			guard.own = []string{proxy.host}
		}
	}
	return transport, dialer, nil
}

func tlsConfig(connection *access.Connection) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if connection == nil || connection.TLS == nil {
		return config, nil
	}
	files := connection.TLS
	config.ServerName = files.ServerName
	if files.CA != "" {
		text, err := readPEM(connection, files.CA)
		if err != nil {
			return nil, err
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, invalid("connection %s is wrong: %s has no certificate in PEM form", connection.Name, files.CA)
		}
	}
	if files.Cert == "" && files.Key == "" {
		return config, nil
	}
	cert, err := readPEM(connection, files.Cert)
	if err != nil {
		return nil, err
	}
	key, err := readPEM(connection, files.Key)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, invalid("connection %s is wrong: %s and %s are not a certificate and its key", connection.Name, files.Cert, files.Key)
	}
	config.Certificates = []tls.Certificate{pair}
	return config, nil
}

// readPEM reads a file of a connection. That of a flow file stays below its directory.
func readPEM(connection *access.Connection, path string) ([]byte, error) {
	file, err := openPEM(connection, path)
	if err != nil {
		return nil, invalid("connection %s is wrong: its file %s cannot be read: it must exist below the directory of the connection's file", connection.Name, quoted(path))
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxPEM))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return text, nil
}

func openPEM(connection *access.Connection, path string) (*os.File, error) {
	path = filepath.FromSlash(path)
	switch {
	case !connection.Operator:
		return os.OpenInRoot(connection.Folder, path)
	case filepath.IsAbs(path):
		return os.Open(path)
	}
	return os.Open(filepath.Join(connection.Folder, path))
}

// tryTimeout is the time of one try.
func tryTimeout(connection *access.Connection) time.Duration {
	if connection == nil || connection.HTTP.Timeout <= 0 {
		return maxTime
	}
	return connection.HTTP.Timeout
}
