package mail_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/flowhost/flowhost/internal/reach/mail"
	"github.com/flowhost/flowhost/run/access"
)

// TestTheGuestSeesNoAddress sends mail through servers that name themselves, and through some
// that cannot be reached: the guest sees neither host, port nor user, and the operator does.
func TestTheGuestSeesNoAddress(t *testing.T) {
	t.Parallel()
	const host, port = "smtp.hidden.test", 2599
	refused := &net.DNSError{Err: "no such host", Name: host}
	talking := func(greeting string) func(context.Context) (net.Conn, error) {
		return func(context.Context) (net.Conn, error) {
			here, there := net.Pipe()
			go converse(there, greeting, host) // ends with the pipe, which the client closes
			return here, nil
		}
	}
	for name, tt := range map[string]struct {
		dial func(context.Context) (net.Conn, error)
		tls  string
		code string // "" for a mail that is sent
		full string
	}{
		"no such name": {func(context.Context) (net.Conn, error) { return nil, refused }, "none", access.CodeUnreachable, host},
		"private": {func(context.Context) (net.Conn, error) {
			return nil, &access.Fault{Code: access.CodeDenied, Rule: "private address", Target: host + ":2599", Message: host + " leads to 192.0.2.7", Add: `private = ["192.0.2.7:2599"]`}
		}, "none", access.CodeDenied, "192.0.2.7"},
		"time is over": {func(ctx context.Context) (net.Conn, error) { <-ctx.Done(); return nil, ctx.Err() }, "none", access.CodeTimeout, host},
		"no STARTTLS":  {talking("220 " + host + " ready"), "required", access.CodeRefused, host},
		"not in TLS": {func(context.Context) (net.Conn, error) {
			here, there := net.Pipe()
			go func() { _, _ = io.Copy(io.Discard, there) }() // both end with the pipe
			go func() { _, _ = fmt.Fprintf(there, "220 %s ready\r\n", host) }()
			return here, nil
		}, "implicit", access.CodeUnreachable, host},
		"sent":            {talking("220 " + host + " ready"), "none", "", ""},
		"refused by name": {talking("220 " + host + " strict"), "none", access.CodeRefused, strings.ToUpper(host)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := mail.New(mail.Config{Secrets: vault{}, Dial: func(ctx context.Context, _ *access.Connection, _, _ string) (net.Conn, error) { return tt.dial(ctx) }})
			t.Cleanup(client.Close)
			c := &access.Connection{Name: "alerts", Type: access.TypeSMTP, Folder: t.TempDir(),
				SMTP: &access.SMTPConnection{Host: host, Port: port, From: "flows@example.com", To: []string{"*@example.com"}, StartTLS: tt.tls}}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			if tt.code == access.CodeTimeout {
				ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
			}
			defer cancel()
			policy := access.Policy{Grants: access.Grants{Connections: []string{"alerts"}}}
			a := client.Do(ctx, access.Caller{}, policy, c, &access.Operation{Number: 1, Kind: access.KindMail,
				Head: json.RawMessage(`{"connection":"alerts","to":["ops@example.com"],"subject":"s"}`)})
			if (a.Fault == nil) != (tt.code == "") || a.Fault != nil && a.Fault.Code != tt.code {
				t.Fatalf("%s %+v", a.Head, a.Fault)
			}
			if full := a.Fault.Full(); full != nil && !strings.Contains(full.Message+full.Target, tt.full) {
				t.Errorf("the operator sees %+v", full)
			}
			fault, err := json.Marshal(a.Fault)
			if err != nil {
				t.Fatal(err)
			}
			for _, part := range []string{host, strings.ToUpper(host), "2599", "192.0.2.7"} {
				if strings.Contains(string(fault)+string(a.Head), part) {
					t.Errorf("%q is in %s %s", part, fault, a.Head)
				}
			}
		})
	}
}

// converse is a server that names itself in all that it says, and refuses recipients if its
// greeting is strict.
func converse(conn net.Conn, greeting, host string) {
	lines := bufio.NewScanner(conn)
	if _, err := fmt.Fprintf(conn, "%s\r\n", greeting); err != nil {
		return
	}
	for content := false; lines.Scan(); {
		line, answer := lines.Text(), "250 "+host+" ok"
		switch {
		case content && line != ".":
			continue
		case content:
			content = false
		case line == "DATA":
			content, answer = true, "354 "+host
		case strings.HasPrefix(line, "RCPT") && strings.Contains(greeting, "strict"):
			answer = "550 5.7.1 you may not send at " + strings.ToUpper(host) + ":2599"
		}
		if _, err := fmt.Fprintf(conn, "%s\r\n", answer); err != nil {
			return
		}
	}
}
