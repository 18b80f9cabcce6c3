//go:build linux

package dbserver

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"time"
)

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority() (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "authority"}, NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	return &authority{cert, key}, err
}

// write signs a certificate for db.test, and writes it with its key.
func (a *authority) write(dir string, until time.Time) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "db.test"}, DNSNames: []string{"db.test"}, NotAfter: until}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	if err := writePEM(filepath.Join(dir, "cert.pem"), "CERTIFICATE", der); err != nil {
		return err
	}
	return writePEM(filepath.Join(dir, "key.pem"), "PRIVATE KEY", private)
}

func writePEM(path, kind string, der []byte) error {
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}

// certificates writes two authorities, and a certificate of the first.
func certificates(dir string) error {
	a, err := newAuthority()
	if err != nil {
		return err
	}
	other, err := newAuthority()
	if err != nil {
		return err
	}
	if err := writePEM(filepath.Join(dir, "ca.pem"), "CERTIFICATE", a.cert.Raw); err != nil {
		return err
	}
	if err := writePEM(filepath.Join(dir, "other.pem"), "CERTIFICATE", other.cert.Raw); err != nil {
		return err
	}
	return a.write(dir, time.Now().Add(24*time.Hour))
}

// Expire restarts the server with a certificate that is out of date, of an authority that it
// writes as ca.pem.
func (s *Server) Expire() error {
	a, err := newAuthority()
	if err != nil {
		return err
	}
	s.Kill()
	if err := writePEM(s.path("ca.pem"), "CERTIFICATE", a.cert.Raw); err != nil {
		return err
	}
	if err := a.write(s.Dir, time.Now().Add(-time.Hour)); err != nil {
		return err
	}
	if err := s.own(); err != nil {
		return err
	}
	return s.Start()
}
