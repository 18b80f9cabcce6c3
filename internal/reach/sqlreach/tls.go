package sqlreach

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"

	"github.com/flowhost/flowhost/run/access"
)

// tlsFiles are the contents of the files of a tls block. They are part of what makes a
// connection what it is, so that a renewed certificate makes a new pool.
type tlsFiles struct {
	CA, Cert, Key []byte
}

func readTLS(c *access.Connection) (tlsFiles, *access.Fault) {
	var files tlsFiles
	if c.TLS == nil {
		return files, nil
	}
	for _, f := range []struct {
		name, path string
		to         *[]byte
	}{{"ca", c.TLS.CA, &files.CA}, {"cert", c.TLS.Cert, &files.Cert}, {"key", c.TLS.Key, &files.Key}} {
		if f.path == "" {
			continue
		}
		text, err := readBelow(c, f.path)
		if err != nil {
			return files, &access.Fault{Code: access.CodeInternal,
				Message: "the file that tls { " + f.name + " } of the connection names cannot be read: it must be in the directory of the file that declares the connection, or below"}
		}
		*f.to = text
	}
	return files, nil
}

// readBelow reads a file below the connection's directory. The operator may name others.
func readBelow(c *access.Connection, path string) ([]byte, error) {
	if filepath.IsAbs(path) && c.Operator {
		return os.ReadFile(path)
	}
	root, err := os.OpenRoot(c.Folder)
	if err != nil {
		return nil, err
	}
	text, err := root.ReadFile(filepath.FromSlash(path))
	_ = root.Close() // it was only read
	return text, err
}

// tlsMode is the mode of a connection, which is not weaker than what the DSN asks for.
func tlsMode(c *access.Connection, d *dsn) (string, *access.Fault) {
	mode := access.TLSVerifyFull
	if c.Operator && d.local() {
		mode = access.TLSDisable
	}
	if c.TLS != nil && c.TLS.Mode != "" {
		mode = c.TLS.Mode
	} else if c.TLS != nil && (c.TLS.CA != "" || c.TLS.Cert != "" || c.TLS.ServerName != "") {
		mode = access.TLSVerifyFull
	}
	switch mode {
	case access.TLSDisable, access.TLSRequire, access.TLSVerifyFull:
	default:
		return "", invalid(`tls { mode } of the connection is none of "disable", "require" and "verify-full"`)
	}
	asked, known := map[string]string{
		"": mode, "disable": access.TLSDisable, "require": access.TLSRequire, "verify-full": access.TLSVerifyFull, // sslmode
		"false": access.TLSDisable, "skip-verify": access.TLSRequire, "true": access.TLSVerifyFull, // tls
	}[d.params["sslmode"]+d.params["tls"]]
	switch {
	case !known:
		return "", invalid(`the DSN asks for a mode of TLS that is not supported: leave it out, and write tls { mode = … } with "disable", "require" or "verify-full"`)
	case asked != mode:
		return "", invalid("the DSN asks for TLS mode %q, and the connection uses %q: write tls { mode = %q } to change it, or leave it out of the DSN", asked, mode, asked)
	case d.socket != "" && mode != access.TLSDisable:
		return "", invalid(`there is no TLS on a unix socket: write tls { mode = "disable" }`)
	}
	return mode, nil
}

// tlsConfig is nil for a connection without TLS.
func tlsConfig(c *access.Connection, d *dsn, files tlsFiles) (*tls.Config, *access.Fault) {
	mode, f := tlsMode(c, d)
	if f != nil || mode == access.TLSDisable {
		return nil, f
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: d.host, InsecureSkipVerify: mode == access.TLSRequire}
	if c.TLS != nil && c.TLS.ServerName != "" {
		config.ServerName = c.TLS.ServerName
	}
	if files.CA != nil {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(files.CA) {
			return nil, invalid("the file that tls { ca } of the connection names has no certificate in PEM form")
		}
	}
	if files.Cert != nil || files.Key != nil {
		pair, err := tls.X509KeyPair(files.Cert, files.Key)
		if err != nil {
			return nil, invalid("tls { cert, key } of the connection are not a certificate and its key in PEM form")
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}
