package serve

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flowhost/flowhost/cmd/flowhost/internal/settings"
	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run/access"
)

// outsideOf is what flow files and settings declare.
func outsideOf(t *testing.T, flow, config string) *Outside {
	t.Helper()
	return outsideIn(t, t.TempDir(), flow, config)
}

// outsideIn is the same in a directory that has other files.
func outsideIn(t *testing.T, dir, flow, config string) *Outside {
	t.Helper()
	for name, text := range map[string]string{"flow.hcl": flow, settings.FileName: config} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := settings.Load("", filepath.Join(dir, "flow.hcl"))
	if err != nil {
		t.Fatal(err)
	}
	set, diags := flows.Load(t.Context(), []string{dir}, flows.Options{Operator: s.Operator})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	o, err := NewOutside(s, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(o.Close)
	o.Deploy(set)
	return o
}

// talker accepts connections and has each served, until the test ends.
func talker(t *testing.T, serve func(net.Conn)) (address string) {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer conn.Close()
				defer context.AfterFunc(t.Context(), func() { conn.Close() })()
				serve(conn)
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		all.Wait()
	})
	return l.Addr().String()
}

// postgres is a server that answers the first message of a session with an error.
func postgres(t *testing.T, code, message string) string {
	return talker(t, func(conn net.Conn) {
		var size uint32
		if binary.Read(conn, binary.BigEndian, &size) != nil || size > 1<<16 {
			return
		}
		if _, err := io.CopyN(io.Discard, conn, int64(size)-4); err != nil {
			return
		}
		body := "SFATAL\x00VFATAL\x00C" + code + "\x00M" + message + "\x00\x00"
		reply := append([]byte("E"), binary.BigEndian.AppendUint32(nil, uint32(len(body)+4))...)
		_, _ = conn.Write(append(reply, body...))
	})
}

// mailServer is one that offers nothing.
func mailServer(conn net.Conn) {
	fmt.Fprint(conn, "220 example.com ready\r\n")
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "QUIT") {
			fmt.Fprint(conn, "221 bye\r\n")
			return
		}
		fmt.Fprint(conn, "250 example.com\r\n")
	}
}

const flowAlone = `flow "shop" {
  wait "moment" {
    duration = "1ms"
  }
}
`

// TestProbe tries connections of which one thing is wrong each, and some that work.
func TestProbe(t *testing.T) {
	t.Parallel()
	const password = "hunter2-secret"
	status := func(code int) *httptest.Server {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/v1" && r.Method == http.MethodGet {
				w.WriteHeader(code)
			}
			fmt.Fprint(w, r.Header.Get("Authorization"))
		}))
		t.Cleanup(s.Close)
		return s
	}
	secure := httptest.NewTLSServer(nil)
	t.Cleanup(secure.Close)
	secure.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	closed := talker(t, func(net.Conn) {})
	free, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := free.Addr().String()
	free.Close()
	stubborn := talker(t, func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) })
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte(password), 0o600); err != nil {
		t.Fatal(err)
	}
	web := func(url, more string) string {
		return fmt.Sprintf("connection \"c\" {\n type = \"http\"\n base_url = %q\n allow = [\"POST /orders\"]\n%s\n}\n", url, more)
	}
	database := func(dsn string) string {
		return fmt.Sprintf("connection \"c\" {\n type = \"postgres\"\n dsn = %q\n tls {\n mode = \"disable\"\n }\n}\n", dsn)
	}
	bearer := fmt.Sprintf("auth {\n bearer = secret.token\n }\n}\nsecret \"token\" {\n file = %q\n", token)
	withPassword := func(server string) string {
		dsn := filepath.Join(t.TempDir(), "dsn")
		if err := os.WriteFile(dsn, []byte("postgres://app:"+password+"@"+server+"/shop?sslmode=disable"), 0o600); err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("connection \"c\" {\n type = \"postgres\"\n dsn = secret.dsn\n}\nsecret \"dsn\" {\n file = %q\n}\n", dsn)
	}
	mailHost, mailPort, _ := net.SplitHostPort(talker(t, mailServer))
	smtp := func(more string) string {
		return fmt.Sprintf("connection \"c\" {\n type = \"smtp\"\n host = %q\n port = %s\n from = \"a@example.com\"\n to = [\"b@example.com\"]\n%s\n}\n", mailHost, mailPort, more)
	}
	refused := status(403)
	public := status(200).URL
	for name, test := range map[string]struct {
		flow, settings        string
		problem, message, add string
		reached               string
	}{
		"http":               {"", web(public+"/v1", ""), "", "", "", public + "/v1, which answers GET with 200 OK"},
		"http, no such page": {"", web(status(404).URL+"/v1", ""), "", "", "", "404 Not Found"},
		"http, no auth":      {"", web(status(401).URL+"/v1", ""), "credentials", "has no auth block", "", ""},
		"http, refused":      {"", web(refused.URL+"/v1", bearer), "credentials", "refuses the credentials of the auth block", "", ""},
		"http, certificate":  {"", web(secure.URL, ""), "tls", "certificate", "", ""},
		"http, nobody":       {"", web("http://"+nobody, ""), "unreachable", "connection refused", "", ""},
		"http, silent":       {"", web("http://"+stubborn, ""), "timeout", "--timeout", "", ""},
		"http, guard":        {web(public, ""), "", "address", "127.0.0.1 is not public", "private = [\"" + strings.TrimPrefix(public, "http://") + "\"]", ""},
		"http, not allowed":  {web(public, ""), "allow \"*\" {\n publish = [\"a\"]\n}\n", "operator", "does not allow connection", "connections = [\"c\"], in allow \"*\" { … } of the settings", ""},
		"secret":             {"", web(public, "auth {\n bearer = secret.token\n }\n}\nsecret \"token\" {\n env = \"FLOWHOST_PROBE_NOWHERE\"\n"), "secret", "FLOWHOST_PROBE_NOWHERE", "", ""},
		"sqlite":             {"", "connection \"c\" {\n type = \"sqlite\"\n path = \"./new.db\"\n access = \"rw\"\n}\n", "", "", "", "sqlite database ./new.db"},
		"sqlite, no file":    {"", "connection \"c\" {\n type = \"sqlite\"\n path = \"./new.db\"\n}\n", "database", "the file of the database is missing", "", ""},
		"postgres, password": {"", withPassword(postgres(t, "28P01", "no "+password)), "credentials", "check user and password", "", ""},
		"postgres, database": {"", withPassword(postgres(t, "3D000", "no such database")), "database", "no database of the name", "", ""},
		"postgres, nobody":   {"", database("postgres://app@" + nobody + "/shop"), "unreachable", "nothing accepts connections there", "", ""},
		"postgres, closes":   {"", database("postgres://app@" + closed + "/shop"), "unreachable", closed + " answers, but not as expected", "", ""},
		"postgres, silent":   {"", database("postgres://app@" + stubborn + "/shop"), "timeout", "--timeout", "", ""},
		"postgres, guard":    {database("postgres://app@" + closed + "/shop"), "", "address", "127.0.0.1 is not public", "private = [\"" + closed + "\"]", ""},
		"mail":               {"", smtp("starttls = \"none\""), "", "", "", "mail server " + mailHost + ":" + mailPort},
		"mail, no TLS":       {"", smtp(""), "refused", "does not offer STARTTLS", "", ""},
		"not declared":       {"", "", "declaration", "is not declared", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := outsideOf(t, flowAlone+test.flow, test.settings)
			limit := time.Minute
			if test.problem == "timeout" {
				limit = 300 * time.Millisecond
			}
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			p := o.Test(ctx, "shop", "c")
			if p.Works != (test.problem == "") || p.Problem != test.problem || !strings.Contains(p.Message, test.message) || p.Add != test.add ||
				!strings.Contains(p.Reached, test.reached) || (p.Reached == "") == p.Works {
				t.Errorf("%+v", p)
			}
			if strings.Contains(fmt.Sprint(p), password) {
				t.Errorf("the password is in %+v", p)
			}
		})
	}
}

// What a resolver says is the problem, and not what a driver makes of it.
func TestProbeOfUnknownNames(t *testing.T) {
	t.Parallel()
	p := &trial{lookup: fmt.Errorf("lookup: %w", &net.DNSError{Err: "no such host", Name: "db.example.com."}), failed: errors.New("lookup failed")}
	p.blame(&access.Fault{Code: access.CodeUnreachable, Message: "the database cannot be reached"})
	if p.Problem != problemName || p.Message != "the name db.example.com does not resolve: check its spelling and the DNS of this machine: no such host" {
		t.Errorf("%+v", p.Probe)
	}
}
