package mail_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/quotedprintable"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-sasl"

	"github.com/flowhost/flowhost/internal/reach/mail"
	"github.com/flowhost/flowhost/run/access"
)

const simple = `{"connection":"alerts","to":["ops@example.com"],"subject":"s"}`

func TestText(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	const body = "Grüße,\n.\r\n.\r\nQUIT\r\n" + "a line without end: "
	long := strings.Repeat("0123456789", 200) + "\r.\r"
	got, m := r.sends(`{"connection":"alerts","to":["Öps <ops@example.com>","a@example.org"],"cc":["b+c@EXAMPLE.ORG"],
		"subject":"Über 17","reply_to":"team@elsewhere.net","headers":{"x-order":"17","In-Reply-To":"<a@b>"}}`, body+long)
	if got.from != "flows@example.com" || strings.Join(got.to, " ") != "ops@example.com a@example.org b+c@example.org" || got.user != "flows" || !got.encrypted {
		t.Errorf("%+v", got)
	}
	decoder := new(mime.WordDecoder)
	for name, want := range map[string]string{
		"From": `"Flows" <flows@example.com>`, "To": `Öps <ops@example.com>, <a@example.org>`, "Cc": "<b+c@example.org>", "Reply-To": "<team@elsewhere.net>",
		"Subject": "Über 17", "X-Order": "17", "In-Reply-To": "<a@b>", "Auto-Submitted": "auto-generated", "Mime-Version": "1.0",
		"Content-Type": "text/plain; charset=utf-8", "Content-Transfer-Encoding": "quoted-printable",
	} {
		if text, err := decoder.DecodeHeader(m.Header.Get(name)); err != nil || text != want {
			t.Errorf("%s: %q, %v, want %q", name, text, err, want)
		}
	}
	if date, err := m.Header.Date(); err != nil || time.Since(date).Abs() > time.Hour {
		t.Errorf("%v, %v", date, err)
	}
	text, err := io.ReadAll(quotedprintable.NewReader(m.Body))
	want := strings.ReplaceAll(strings.ReplaceAll(strings.ReplaceAll(body+long, "\r\n", "\n"), "\r", "\n"), "\n", "\r\n")
	if err != nil || string(text) != want && string(text) != want+"\r\n" {
		t.Errorf("%q, %v, want %q", text, err, want)
	}
	if dials := r.dialed(); len(dials) != 1 || dials[0] != "tcp example.com:587" {
		t.Errorf("%q", dials)
	}
}

func TestOtherTypes(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	pdf := strings.Repeat("\x00\r\n.\r\n\xff", 1000)
	_, m := r.sends(`{"connection":"alerts","to":["ops@example.com"],"subject":"s","content_type":"Application/PDF; name=\"a b.pdf\""}`, pdf)
	content, err := io.ReadAll(base64.NewDecoder(base64.StdEncoding, m.Body))
	if err != nil || string(content) != pdf || m.Header.Get("Content-Type") != `application/pdf; name="a b.pdf"` {
		t.Errorf("%d bytes, %v, %s", len(content), err, m.Header.Get("Content-Type"))
	}
	parts := "--b\r\nContent-Type: text/plain\r\n\r\n.\r\nGrüße\r\n--b--\r\n"
	_, m = r.sends(`{"connection":"alerts","to":["ops@example.com"],"subject":"s","content_type":"multipart/mixed; boundary=b"}`, strings.ReplaceAll(parts, "\r\n", "\n"))
	content, err = io.ReadAll(m.Body)
	if err != nil || string(content) != parts || m.Header.Get("Content-Transfer-Encoding") != "8bit" {
		t.Errorf("%q, %v, %s", content, err, m.Header.Get("Content-Transfer-Encoding"))
	}
	_, m = r.sends(`{"connection":"alerts","to":["ops@example.com"],"subject":"s","content_type":"text/html"}`, "<p>x")
	if got := m.Header.Get("Content-Type"); got != "text/html; charset=utf-8" {
		t.Error(got)
	}
}

// TestSameID sends a mail twice, as an attempt that is repeated does, then others.
func TestSameID(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	ids := map[string]int{}
	send := func(head, body string) {
		t.Helper()
		_, m := r.sends(head, body)
		ids[m.Header.Get("Message-Id")]++
	}
	send(simple, "a")
	r.caller.Attempt = 2
	send(simple, "a")
	send(simple, "b")
	send(strings.Replace(simple, `"s"`, `"t"`, 1), "a")
	r.caller.Run = "run-2"
	send(simple, "a")
	if len(ids) != 4 {
		t.Errorf("%v", ids)
	}
	for id := range ids {
		if !strings.HasSuffix(id, "@example.com>") {
			t.Error(id)
		}
	}
	var head struct {
		MessageID string `json:"message_id"`
		Reply     string `json:"reply"`
	}
	if err := json.Unmarshal(r.do(simple, "a").Head, &head); err != nil || ids[head.MessageID] != 1 || head.Reply == "" {
		t.Errorf("%+v, %v", head, err)
	}
}

func TestInvalid(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	with := func(members string) string {
		return `{"connection":"alerts","to":["ops@example.com"],"subject":"s",` + members + `}`
	}
	const lf, cr = `\n`, `\r`
	for _, test := range []struct{ head, body, message string }{
		{``, "", "not as documented"},
		{`[]`, "", "not as documented"},
		{simple + simple, "", "more than one"},
		{with(`"bcc":["ops@example.com"]`), "", "unknown field"},
		{`{"to":["ops@example.com"],"subject":"s"}`, "", "no connection"},
		{`{"connection":"alerts","subject":"s"}`, "", "no recipients"},
		{`{"connection":"alerts","to":["ops@example.com"]}`, "", "no subject"},
		{`{"connection":"alerts","subject":"s","to":[` + strings.Repeat(`"ops@example.com",`, 100) + `"ops@example.com"]}`, "", "101 recipients"},
		{`{"connection":"alerts","to":["ops@example.com"],"subject":"s` + cr + lf + `Bcc: x@y.z"}`, "", "subject: line breaks"},
		{`{"connection":"alerts","to":["ops@example.com"],"subject":"s` + lf + ` x"}`, "", "subject: line breaks"},
		{`{"connection":"alerts","to":["ops@example.com"],"subject":"=?utf-8?q?a=0D=0Ab?="}`, "", "encoded word"},
		{`{"connection":"alerts","to":["ops@example.com"],"subject":"` + strings.Repeat("s", 901) + `"}`, "", "longer than 900"},
		{with(`"headers":{"X-A":"a` + cr + `b"}`), "", "line breaks"},
		{with(`"headers":{"X-A":"a\u0000b"}`), "", "line breaks"},
		{with(`"headers":{"X-A: b` + cr + lf + `Bcc":"a"}`), "", "cannot be set"},
		{with(`"headers":{"X-":"a"}`), "", "cannot be set"},
		{with(`"headers":{"X-Ü":"a"}`), "", "cannot be set"},
		{with(`"headers":{"X-A":"a","x-a":"b"}`), "", "set twice"},
		{with(`"content_type":"text"`), "", "no media type"},
		{with(`"content_type":"text/plain` + cr + lf + `Bcc: a@b.c"`), "", "line breaks"},
		{with(`"content_type":"multipart/mixed"`), "", "needs a boundary"},
		{with(`"content_type":"message/rfc822"`), "", "not sent"},
		{with(`"content_type":"multipart/mixed;boundary=b"`), "a\r.\rb", "carriage return"},
		{with(`"content_type":"multipart/mixed;boundary=b"`), "a\x00", "zero byte"},
		{with(`"content_type":"multipart/mixed;boundary=b"`), strings.Repeat("a", 999), "more than 998"},
		{with(`"reply_to":"x"`), "", "no address"},
		{with(`"reply_to":"a@b.c` + lf + `"`), "", "no address"},
	} {
		r.refuses(test.head, test.body, access.CodeInvalid, test.message)
	}
	for _, name := range []string{"From", "Sender", "to", "CC", "Bcc", "Reply-To", "Subject", "Date", "Message-Id", "MIME-Version", "Content-Type",
		"Content-Transfer-Encoding", "Return-Path", "Received", "Resent-To", "DKIM-Signature", "Authentication-Results", "Auto-Submitted", "Errors-To"} {
		r.refuses(with(`"headers":{"`+name+`":"a"}`), "", access.CodeInvalid, "cannot be set")
	}
	if dials := r.dialed(); len(dials) > 0 {
		t.Errorf("dialed %q", dials)
	}
}

func TestRecipients(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	to := func(address string) string {
		return fmt.Sprintf(`{"connection":"alerts","to":["ops@example.com"],"cc":[%q],"subject":"s"}`, address)
	}
	for _, address := range []string{"dev@example.com", "Ops@example.com", "a@sub.example.org", "a@example.org.evil.net", "ops@example.com.", "a@exаmple.org"} {
		if f := r.do(to(address), "").Fault; f == nil || f.Code != access.CodeDenied && f.Code != access.CodeInvalid || f.Code == access.CodeDenied && (f.Rule == "" || f.Target == "" || f.Add == "") {
			t.Errorf("%s: %+v", address, f)
		}
	}
	for _, address := range []string{
		"", "a", "@example.org", "a@", "a@b@example.org", "a b@example.org", `"a b"@example.org`, `"a@evil.net"@example.org`, "a%evil.net@example.org", "evil.net!a@example.org",
		"a@[127.0.0.1]", "a..b@example.org", ".a@example.org", "a@example.org, b@evil.net", "a@example.org>\r\nRCPT TO:<b@evil.net", "a@example.org\n",
		"group:a@example.org;", "ü@example.org", "a@-example.org", "a@localhost", "A\r\nBcc: x@y.z <a@example.org>", "=?utf-8?q?A=0D=0AB?= <a@example.org>",
	} {
		if f := r.do(to(address), "").Fault; f == nil || f.Code != access.CodeInvalid {
			t.Errorf("%q: %+v", address, f)
		}
	}
	if dials := r.dialed(); len(dials) > 0 {
		t.Errorf("dialed %q", dials)
	}
}

func TestGrants(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	both := r.policy
	r.policy.Allow = &access.Allow{Pattern: "orders*", Connections: []string{"alerts"}}
	r.sends(simple, "")
	r.policy.Allow = &access.Allow{Pattern: "orders*", Connections: []string{"warehouse"}}
	if f := r.refuses(simple, "", access.CodeDenied, "allow block"); f.Add != `connections = ["alerts"]` {
		t.Errorf("%+v", f)
	}
	r.policy = access.Policy{}
	if f := r.refuses(simple, "", access.CodeDenied, "does not name it"); f.Add != "connections = [connection.alerts]" {
		t.Errorf("%+v", f)
	}
	r.policy = both
	connection := r.connection
	r.connection = nil
	if f := r.refuses(simple, "", access.CodeDenied, "deployed"); !f.Retryable {
		t.Errorf("%+v", f)
	}
	r.connection = &access.Connection{Name: "alerts", Type: access.TypeHTTP, HTTP: &access.HTTPConnection{}}
	r.refuses(simple, "", access.CodeInvalid, "not smtp")
	r.connection = connection
	connection.Name = "other"
	r.refuses(simple, "", access.CodeInvalid, "several ways") // the host has looked up another one
	if dials := r.dialed(); len(dials) != 1 {
		t.Errorf("dialed %q", dials)
	}
}

func TestTLS(t *testing.T) {
	t.Parallel()
	t.Run("implicit", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, func(s *server) { s.Network = "implicit" })
		r.connection.SMTP.StartTLS, r.connection.SMTP.Port = "implicit", 465
		if got, _ := r.sends(simple, ""); !got.encrypted || got.user != "flows" {
			t.Errorf("%+v", got)
		}
		if dials := r.dialed(); dials[0] != "tcp example.com:465" {
			t.Errorf("%q", dials)
		}
	})
	t.Run("none", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, func(s *server) { s.TLSConfig = nil })
		r.connection.SMTP.StartTLS = "none"
		r.refuses(simple, "", access.CodeInvalid, "over TLS only")
		r.connection.SMTP.User, r.connection.SMTP.Password = access.Value{}, access.Value{}
		if got, _ := r.sends(simple, ""); got.encrypted || got.user != "" {
			t.Errorf("%+v", got)
		}
	})
	t.Run("not offered", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, func(s *server) { s.TLSConfig, s.AllowInsecureAuth = nil, true })
		r.refuses(simple, "", access.CodeRefused, "does not offer STARTTLS")
	})
	t.Run("unknown authority", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, nil)
		r.connection.TLS = nil
		r.refuses(simple, "", access.CodeUnreachable, "certificate")
	})
	t.Run("another name", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, nil)
		r.connection.SMTP.Host = "example.net"
		r.refuses(simple, "", access.CodeUnreachable, "example.net")
		r.connection.TLS.ServerName = "example.com"
		r.sends(simple, "")
	})
	t.Run("files", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, nil)
		r.connection.TLS = &access.TLS{CA: "missing.pem"}
		r.refuses(simple, "", access.CodeInvalid, "tls.ca")
		r.connection.TLS = &access.TLS{CA: "ca.pem", Cert: "ca.pem", Key: "missing.pem"}
		r.refuses(simple, "", access.CodeInvalid, "tls.cert")
		r.connection.SMTP.StartTLS = "maybe"
		r.refuses(simple, "", access.CodeInvalid, "required, none or implicit")
	})
}

func TestLogin(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(s *server) { s.methods = []string{sasl.Login} })
	if got, _ := r.sends(simple, ""); got.user != "flows" {
		t.Errorf("%+v", got)
	}
	other := newRig(t, func(s *server) { s.methods = []string{"CRAM-MD5"} })
	other.refuses(simple, "", access.CodeRefused, "neither AUTH PLAIN nor AUTH LOGIN")
	wrong := newRig(t, nil)
	wrong.connection.SMTP.Password = access.Value{Text: password + "!"} // which the server repeats
	if f := wrong.refuses(simple, "", access.CodeRefused, "refused the credentials"); f.Retryable {
		t.Errorf("%+v", f)
	}
	wrong.connection.SMTP.Password = access.Value{Secret: "missing"}
	wrong.refuses(simple, "", access.CodeDenied, "no secret missing")
}

func TestServerRefuses(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(s *server) { s.refuse, s.MaxMessageBytes = "b@example.org", 2000 })
	head := `{"connection":"alerts","to":["ops@example.com","b@example.org"],"subject":"s"}`
	if f := r.refuses(head, "", access.CodeRefused, "recipient b@example.org"); f.Detail != "550 5.1.1 nobody here, said ***" || f.Retryable {
		t.Errorf("%+v", f)
	}
	r.refuses(simple, strings.Repeat("x", 3000), access.CodeTooLarge, "2000")
	r.refuses(simple, strings.Repeat("x", 10<<20+1), access.CodeTooLarge, "10 MiB")
}

// speak is a server that sends one text to each client, then waits for the client's end.
func speak(t *testing.T, text string) func(context.Context, *access.Connection, string, string) (net.Conn, error) {
	t.Helper()
	return func(ctx context.Context, _ *access.Connection, _, _ string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go func() {
			_, _ = io.WriteString(theirs, text) // the client may leave
			_, _ = io.Copy(io.Discard, theirs)
			_ = theirs.Close()
		}()
		return ours, nil
	}
}

func TestHostileServers(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ says, code, message string }{
		"endless line":  {"220 " + strings.Repeat("x", 2<<20), access.CodeUnreachable, "more than a session needs"},
		"endless reply": {strings.Repeat("220-x\r\n", 1<<20), access.CodeUnreachable, "more than a session needs"},
		"other":         {"HTTP/1.1 400 Bad Request\r\n\r\n", access.CodeUnreachable, "with example.com:587 failed"},
		"busy":          {"421 4.3.2 later\x1b[31m\r\n", access.CodeRefused, "421 4.3.2 later[31m"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			r.Client = mail.New(mail.Config{Secrets: vault{"password": password}, Dial: speak(t, test.says)})
			if f := r.refuses(simple, "", test.code, test.message); !f.Retryable {
				t.Errorf("%+v", f)
			}
		})
	}
}

func TestTimeAndClose(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	dialing := make(chan struct{}, 2)
	silent := speak(t, "")
	r.Client = mail.New(mail.Config{Secrets: vault{"password": password}, Dial: func(ctx context.Context, c *access.Connection, network, address string) (net.Conn, error) {
		dialing <- struct{}{}
		return silent(ctx, c, network, address)
	}})
	op := &access.Operation{Number: 1, Kind: access.KindMail, Head: json.RawMessage(simple)}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if f := r.Do(ctx, r.caller, r.policy, r.connection, op).Fault; f == nil || f.Code != access.CodeTimeout || !f.Retryable {
		t.Errorf("%+v", f)
	}
	for len(dialing) > 0 {
		<-dialing
	}
	done := make(chan *access.Fault, 1)
	go func() { done <- r.Do(t.Context(), r.caller, r.policy, r.connection, op).Fault }()
	<-dialing
	r.Close()
	if f := <-done; f == nil || f.Code != access.CodeCanceled {
		t.Errorf("%+v", f)
	}
	r.refuses(simple, "", access.CodeCanceled, "shutting down")
}

func TestLimits(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.connection.Limit = access.Limit{Concurrency: 1, Rate: 0.001, Burst: 1}
	r.sends(simple, "")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	op := &access.Operation{Number: 2, Kind: access.KindMail, Head: json.RawMessage(simple)}
	if f := r.Do(ctx, r.caller, r.policy, r.connection, op).Fault; f == nil || f.Code != access.CodeTimeout || !strings.Contains(f.Message, "rate") {
		t.Errorf("%+v", f)
	}
	r.connection.Limit = access.Limit{Concurrency: 1}
	for range 3 {
		r.sends(simple, "")
	}
}

// TestTest tries connections: no mail is sent, and no fault speaks of one.
func TestTest(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	if err := r.Test(t.Context(), "orders", r.connection); err != nil {
		t.Fatal(err)
	}
	if n := len(r.dialed()); n != 1 || len(r.server.got()) != 0 {
		t.Errorf("%d dials, %d mails", n, len(r.server.got()))
	}
	for name, test := range map[string]struct {
		change        func(*access.Connection)
		code, message string
	}{
		"wrong password": {func(c *access.Connection) { c.SMTP.Password = access.Value{Text: password + "!"} }, access.CodeRefused, "example.com:587 refused the credentials: 535"},
		"no secret":      {func(c *access.Connection) { c.SMTP.Password = access.Value{Secret: "missing"} }, access.CodeDenied, "no secret missing"},
		"another name":   {func(c *access.Connection) { c.TLS.ServerName = "other.example.org" }, access.CodeUnreachable, "STARTTLS with example.com:587 failed: tls: failed to verify certificate"},
		"no sender":      {func(c *access.Connection) { c.SMTP.From = "" }, access.CodeInvalid, "from of connection"},
	} {
		own, inner, tls := *r.connection, *r.connection.SMTP, *r.connection.TLS
		own.SMTP, own.TLS = &inner, &tls
		test.change(&own)
		wrong := newRig(t, nil)
		own.Folder, wrong.connection = wrong.connection.Folder, &own
		fault, ok := errors.AsType[*access.Fault](wrong.Test(t.Context(), "orders", &own))
		if !ok || fault.Code != test.code || !strings.HasPrefix(fault.Message, test.message) || strings.Contains(fault.Message, password) {
			t.Errorf("%s: %+v", name, fault)
		}
	}
	r.Close()
	if err := r.Test(t.Context(), "orders", r.connection); err == nil {
		t.Error("a closed client tests")
	}
}
