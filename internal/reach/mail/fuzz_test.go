package mail

import (
	"bytes"
	"encoding/json"
	"io"
	netmail "net/mail"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flowhost/flowhost/run/access"
)

// FuzzMessage writes whatever a guest may ask for: only the connection's recipients are
// addressed, no header is there that the guest must not set, and no line ends otherwise than
// with CRLF.
func FuzzMessage(f *testing.F) {
	f.Add(`{"connection":"c","to":["ops@example.com"],"subject":"s"}`, "body\r.\r\n.\n")
	f.Add(`{"connection":"c","to":["A\u000d\u000aBcc: x@y.z <a@example.org>"],"subject":"\u000a"}`, "\r\n.\r\n")
	f.Add(`{"connection":"c","cc":["Ä <a@example.org>"],"subject":"ü","headers":{"X-A":"ü"},"content_type":"multipart/a;boundary=b"}`, "--b\r\n")
	f.Add(`{"connection":"c","to":["a@example.org","\"x, y\" <b@example.org>"],"subject":" ","reply_to":"r@s.t","content_type":"a/b;c*=utf-8''%0d%0ax"}`, "\x00")
	smtp := &access.SMTPConnection{Host: "example.com", From: "Flows <flows@example.com>", To: []string{"ops@example.com", "*@example.org"}}
	hosts := []string{"From", "To", "Cc", "Reply-To", "Subject", "Date", "Message-ID", "Auto-Submitted", "MIME-Version", "Content-Type", "Content-Transfer-Encoding"}
	f.Fuzz(func(t *testing.T, text, body string) {
		h, fault := parseHead(&access.Operation{Kind: access.KindMail, Head: json.RawMessage(text), Body: []byte(body)})
		if fault != nil {
			return
		}
		m, fault := newMessage(h, []byte(body), smtp, &access.Caller{Run: "r"}, 1, time.Unix(0, 0))
		if fault != nil {
			return
		}
		for _, to := range m.to {
			if to.String() != "ops@example.com" && to.domain != "example.org" || strings.ContainsAny(to.String(), " <>,%!\r\n") {
				t.Errorf("sent to %q", to)
			}
		}
		for i, c := range m.data {
			if c == '\n' && (i == 0 || m.data[i-1] != '\r') || c == '\r' && (i+1 == len(m.data) || m.data[i+1] != '\n') || c == 0 {
				t.Fatalf("a line of %q does not end with CRLF", m.data)
			}
		}
		headers, _, _ := strings.Cut(string(m.data), "\r\n\r\n")
		seen := map[string]bool{}
		for line := range strings.SplitSeq(headers, "\r\n") {
			if len(line) > 998 {
				t.Errorf("a line of %d bytes", len(line))
			}
			if strings.HasPrefix(line, " ") {
				continue
			}
			name, _, _ := strings.Cut(line, ":")
			if seen[name] || !slices.Contains(hosts, name) && !slices.Contains(guestHeaders, name) && !strings.HasPrefix(name, "X-") {
				t.Errorf("header %q, in %q", name, headers)
			}
			seen[name] = true
		}
		parsed, err := netmail.ReadMessage(bytes.NewReader(m.data))
		if err != nil {
			t.Fatalf("%v: %q", err, m.data)
		}
		to, _ := parsed.Header.AddressList("To") // an error is that there is none
		cc, _ := parsed.Header.AddressList("Cc")
		if len(to)+len(cc) != len(m.to) {
			t.Errorf("%d are named, and %d are addressed: %q", len(to)+len(cc), len(m.to), headers)
		}
		if _, err := io.Copy(io.Discard, parsed.Body); err != nil {
			t.Error(err)
		}
	})
}
