//go:build databases && linux

package serve

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/flowhost/flowhost/internal/testkit/dbserver"
)

// databaseCase is a connection to a server, and what a try of it says.
type databaseCase struct {
	dsn, tls         string
	problem, message string // empty problem: it works
}

// verified is the block tls with the authority and the name of the server.
const verified = "ca = \"ca.pem\"\n server_name = \"db.test\""

// TestProbeDatabases tries connections to servers in each mode of TLS, and those of which one
// thing is wrong each.
func TestProbeDatabases(t *testing.T) {
	t.Parallel()
	for kind, start := range map[string]func() (*dbserver.Server, error){"postgres": dbserver.StartPostgres, "mysql": dbserver.StartMariaDB} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s, err := start()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(s.Close)
			dsn := s.PostgresDSN()
			other, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			nobody := other.Addr().String()
			other.Close()
			without := talker(t, func(conn net.Conn) { // of TLS
				_, _ = conn.Read(make([]byte, 8))
				_, _ = conn.Write([]byte("N"))
			})
			if kind == "mysql" {
				dsn = s.MariaDSN()
				without = talker(t, func(conn net.Conn) { _, _ = conn.Write(greeting) })
			}
			at := func(address string) string { return strings.Replace(dsn, s.Address(), address, 1) }
			plain := `mode = "disable"`
			for name, test := range map[string]databaseCase{
				"plain":          {dsn: dsn, tls: plain},
				"require":        {dsn: dsn, tls: `mode = "require"`},
				"verify-full":    {dsn: dsn, tls: verified},
				"password":       {strings.Replace(dsn, ":s3cret", ":guess", 1), plain, "credentials", "check user and password"},
				"user":           {strings.Replace(dsn, dbserver.User, "stranger_q", 1), verified, "credentials", "check user and password"},
				"database":       {strings.Replace(dsn, dbserver.Database, "nowhere_q", 1), verified, "database", "no database of the name in the DSN"},
				"authority":      {dsn, "ca = \"other.pem\"\n server_name = \"db.test\"", "tls", "name it in tls { ca }"},
				"no authority":   {dsn, `server_name = "db.test"`, "tls", "name it in tls { ca }"},
				"name":           {dsn, `ca = "ca.pem"`, "tls", "tls { server_name }"},
				"nobody":         {at(nobody), plain, "unreachable", "nothing accepts connections there"},
				"without TLS":    {at(without), `mode = "require"`, "tls", `tls { mode = "disable" }`},
				"no such host":   {at("db.invalid:5432"), plain, "name", "db.invalid does not resolve"},
				"another server": {at(talker(t, func(conn net.Conn) { _, _ = conn.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")) })), plain, "unreachable", "answers, but not as expected"},
			} {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					probeDatabase(t, kind, s, test)
				})
			}
		})
		t.Run(kind+" expired", func(t *testing.T) {
			t.Parallel()
			s, err := start()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(s.Close)
			if err := s.Expire(); err != nil {
				t.Fatal(err)
			}
			dsn := s.PostgresDSN()
			if kind == "mysql" {
				dsn = s.MariaDSN()
			}
			probeDatabase(t, kind, s, databaseCase{dsn, verified, "tls", "expired"})
			probeDatabase(t, kind, s, databaseCase{dsn: dsn, tls: `mode = "require"`})
		})
	}
}

// greeting is that of a MySQL server which offers no TLS (protocol version 10).
var greeting = func() []byte {
	body := append([]byte{10}, "8.0.0\x00\x01\x00\x00\x0012345678\x00"...)
	body = append(body, 0x00, 0x82, 45, 2, 0, 0x08, 0, 21)
	body = append(body, make([]byte, 10)...)
	body = append(body, "123456789012\x00mysql_native_password\x00"...)
	return append([]byte{byte(len(body)), 0, 0, 0}, body...)
}()

func probeDatabase(t *testing.T, kind string, s *dbserver.Server, test databaseCase) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"ca.pem", "other.pem"} {
		text, err := os.ReadFile(filepath.Join(s.Dir, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	secret := filepath.Join(t.TempDir(), "dsn")
	if err := os.WriteFile(secret, []byte(test.dsn), 0o600); err != nil {
		t.Fatal(err)
	}
	o := outsideIn(t, dir, flowAlone, fmt.Sprintf("connection \"c\" {\n type = %q\n dsn = secret.dsn\n tls {\n %s\n }\n}\nsecret \"dsn\" {\n file = %q\n}\n", kind, test.tls, secret))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	p := o.Test(ctx, "shop", "c")
	if p.Works != (test.problem == "") || p.Problem != test.problem || !strings.Contains(p.Message, test.message) || (p.Reached == "") == p.Works {
		t.Errorf("%+v", p)
	}
	for _, part := range []string{"s3cret", "guess", dbserver.Password} {
		if strings.Contains(fmt.Sprint(p), part) {
			t.Errorf("the password is in %+v", p)
		}
	}
}
