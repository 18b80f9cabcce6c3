package mail

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/smtp"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/flowhost/flowhost/internal/mask"
	"github.com/flowhost/flowhost/run/access"
)

// Ways to TLS. The first is the default.
const (
	tlsRequired = "required" // by STARTTLS
	tlsNone     = "none"
	tlsImplicit = "implicit"
)

// maxAnswers bounds what a server may send during a session.
const maxAnswers = 1 << 20

// session is one conversation with a server.
type session struct {
	*smtp.Client
	ctx       context.Context
	name      string // of the connection
	server    string // host and port
	hide      []*regexp.Regexp
	secrets   *mask.Masker // of the session: the server may repeat them
	encrypted bool
}

// send delivers a message in a session of its own, and returns the server's last reply.
func (c *Client) send(ctx context.Context, connection *access.Connection, l *login, m *message) (string, *access.Fault) {
	return c.converse(ctx, connection, l, m.from.domain, func(s *session) (string, *access.Fault) { return s.deliver(m) })
}

// converse opens a session under the host's name, with TLS and credentials, and talks in it.
func (c *Client) converse(ctx context.Context, connection *access.Connection, l *login, name string, talk func(*session) (string, *access.Fault)) (reply string, fault *access.Fault) {
	settings, port := connection.SMTP, connection.SMTP.Port
	if port == 0 {
		port = access.DefaultMailPort
	}
	mode := settings.StartTLS
	switch mode {
	case "":
		mode = tlsRequired
	case tlsRequired, tlsNone, tlsImplicit:
	default:
		return "", invalid("the connection's starttls is %q: write required, none or implicit", mode)
	}
	if l != nil && mode == tlsNone {
		return "", invalid(`the connection has a password and starttls = "none": credentials are sent over TLS only`)
	}
	config, fault := tlsConfig(connection)
	if fault != nil {
		return "", fault
	}
	server := net.JoinHostPort(settings.Host, strconv.Itoa(port))
	s := &session{ctx: ctx, name: connection.Name, server: server, hide: append(hiding(settings.Host), regexp.MustCompile(fmt.Sprintf(`:%d\b`, port))), secrets: mask.New(), encrypted: mode == tlsImplicit}
	if l != nil {
		s.secrets.Add(l.password)
		s.hide = append(s.hide, hiding(l.user)...)
	}
	defer func() { reply, fault = s.conceal(reply), s.concealed(fault) }()
	dialed, err := c.config.Dial(ctx, connection, "tcp", server)
	if err != nil {
		return "", s.fault("the connection", err)
	}
	if at, ok := dialed.RemoteAddr().(*net.TCPAddr); ok {
		s.hide = append(s.hide, hiding(at.IP.String())...)
	}
	defer dialed.Close() // which ends the session however far it came
	defer context.AfterFunc(ctx, func() { dialed.Close() })()
	var conn net.Conn = &boundedConn{Conn: dialed, left: maxAnswers}
	if mode == tlsImplicit {
		secure := tls.Client(conn, config)
		if err := secure.HandshakeContext(ctx); err != nil {
			return "", s.fault("TLS", err)
		}
		conn = secure
	}
	if s.Client, err = smtp.NewClient(conn, settings.Host); err != nil {
		return "", s.fault("the session", err)
	}
	if fault := s.open(name, mode, config, l); fault != nil {
		return "", fault
	}
	return talk(s)
}

// open introduces the host, changes to TLS and logs in.
func (s *session) open(name, mode string, config *tls.Config, l *login) *access.Fault {
	if err := s.Hello(name); err != nil {
		return s.fault("EHLO", err)
	}
	if mode == tlsRequired {
		if ok, _ := s.Extension("STARTTLS"); !ok {
			return &access.Fault{Code: access.CodeRefused, Target: s.server,
				Message: fmt.Sprintf(`the mail was not sent: %s does not offer STARTTLS: set starttls to "implicit" if its port begins with TLS`, s.server)}
		}
		if err := s.StartTLS(config); err != nil {
			return s.fault("STARTTLS", err)
		}
		s.encrypted = true
	}
	if l == nil {
		return nil
	}
	return s.login(l)
}

// login sends the credentials by the first method of the server that the host knows.
func (s *session) login(l *login) *access.Fault {
	if !s.encrypted {
		return &access.Fault{Code: access.CodeInternal, Message: "the mail was not sent: there is no TLS for its credentials"}
	}
	_, offered := s.Extension("AUTH")
	methods := strings.Fields(strings.ToUpper(offered))
	var auth smtp.Auth
	switch {
	case slices.Contains(methods, "PLAIN"):
		auth = &plainAuth{*l}
	case slices.Contains(methods, "LOGIN"):
		auth = &loginAuth{*l}
	default:
		return &access.Fault{Code: access.CodeRefused, Target: s.server,
			Message: fmt.Sprintf("the mail was not sent: %s offers neither AUTH PLAIN nor AUTH LOGIN", s.server)}
	}
	if err := s.Auth(auth); err != nil {
		return s.fault("the credentials", withoutText(err))
	}
	return nil
}

// deliver sends the message to all recipients, or to none.
func (s *session) deliver(m *message) (string, *access.Fault) {
	if ok, limit := s.Extension("SIZE"); ok {
		if most, err := strconv.Atoi(limit); err == nil && most > 0 && len(m.data) > most {
			return "", &access.Fault{Code: access.CodeTooLarge, Target: s.server,
				Message: fmt.Sprintf("the mail was not sent: it has %d bytes, and %s takes %d", len(m.data), s.server, most)}
		}
	}
	if ok, _ := s.Extension("8BITMIME"); m.wide && !ok {
		return "", invalid("the mail was not sent: the server takes ASCII only: encode the parts in base64")
	}
	if err := s.Mail(m.from.String()); err != nil {
		return "", s.fault("the sender", err)
	}
	for _, to := range m.to {
		if err := s.Rcpt(to.String()); err != nil {
			return "", s.fault("recipient "+to.String(), err)
		}
	}
	return s.data(m)
}

// data sends the content. Once its end is sent, only the reply decides what became of it.
func (s *session) data(m *message) (string, *access.Fault) {
	const step = "the content"
	id, err := s.Text.Cmd("DATA")
	if err != nil {
		return "", s.fault(step, err)
	}
	s.Text.StartResponse(id)
	_, _, err = s.Text.ReadResponse(354)
	s.Text.EndResponse(id)
	if err != nil {
		return "", s.fault(step, err)
	}
	w := s.Text.DotWriter()
	if _, err = w.Write(m.data); err != nil {
		return "", s.fault(step, err)
	}
	if err := w.Close(); err != nil {
		return "", unknown(s.fault(step, err))
	}
	_, reply, err := s.Text.ReadResponse(250)
	if err != nil {
		return "", unknown(s.fault(step, err))
	}
	_ = s.Quit() // the server has the message
	return s.quote(reply), nil
}

// unknown changes a fault after which the server may have the message.
func unknown(fault *access.Fault) *access.Fault {
	if fault.Code != access.CodeRefused {
		fault.Message = "the mail may have been sent: the connection ended before the server's reply"
	}
	return fault
}

// tlsConfig is how a server is recognized.
func tlsConfig(connection *access.Connection) (*tls.Config, *access.Fault) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: connection.SMTP.Host}
	settings := connection.TLS
	if settings == nil {
		return config, nil
	}
	if settings.ServerName != "" {
		config.ServerName = settings.ServerName
	}
	place := func(path string) string {
		if path = filepath.FromSlash(path); !filepath.IsAbs(path) {
			path = filepath.Join(connection.Folder, path)
		}
		return path
	}
	if settings.CA != "" {
		content, err := os.ReadFile(place(settings.CA))
		config.RootCAs = x509.NewCertPool()
		if err != nil || !config.RootCAs.AppendCertsFromPEM(content) {
			return nil, invalid("the connection's tls.ca cannot be read, or has no certificate in PEM form")
		}
	}
	if settings.Cert != "" {
		pair, err := tls.LoadX509KeyPair(place(settings.Cert), place(settings.Key))
		if err != nil {
			return nil, invalid("the connection's tls.cert and tls.key cannot be read, or are no pair in PEM form")
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// boundedConn ends when the other side has sent too much.
type boundedConn struct {
	net.Conn
	left int
}

var errTooMuch = errors.New("the server sends more than a session needs")

func (c *boundedConn) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, errTooMuch
	}
	n, err := c.Conn.Read(p[:min(len(p), c.left)])
	c.left -= n
	return n, err
}
