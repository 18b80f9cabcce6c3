package mail

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"mime"
	"mime/quotedprintable"
	"slices"
	"strings"
	"time"

	"github.com/flowhost/flowhost/run/access"
)

// message is a mail that is ready to be sent.
type message struct {
	id   string
	from address
	to   []address // all recipients
	data []byte    // headers and body; every line ends with CRLF
	wide bool      // it has bytes that are not ASCII
}

// newMessage writes a mail.
func newMessage(h *head, body []byte, smtp *access.SMTPConnection, caller *access.Caller, number int, now time.Time) (*message, *access.Fault) {
	from, ok := parseAddress(smtp.From)
	if !ok {
		return nil, invalid("the connection's from is no address: write flows@example.com, or Flows <flows@example.com>")
	}
	to, fault := recipients("to", h.To, smtp)
	if fault != nil {
		return nil, fault
	}
	cc, fault := recipients("cc", h.Cc, smtp)
	if fault != nil {
		return nil, fault
	}
	contentType, media, fault := h.contentType()
	if fault != nil {
		return nil, fault
	}
	m := &message{from: from, to: append(slices.Clone(to), cc...), id: messageID(h, body, from.domain, caller, number)}
	encoding, content, fault := m.encode(body, media)
	if fault != nil {
		return nil, fault
	}

	var b bytes.Buffer
	line := func(name, value string) { fmt.Fprintf(&b, "%s: %s\r\n", name, value) }
	line("From", from.header())
	list(&b, "To", to)
	list(&b, "Cc", cc)
	if h.ReplyTo != "" {
		reply, ok := parseAddress(h.ReplyTo)
		if !ok {
			return nil, invalid("reply_to: %.100q is no address", h.ReplyTo)
		}
		line("Reply-To", reply.header())
	}
	line("Subject", mime.QEncoding.Encode("utf-8", h.Subject))
	line("Date", now.UTC().Format(time.RFC1123Z))
	line("Message-ID", m.id)
	line("Auto-Submitted", "auto-generated") // RFC 3834: nobody's vacation replies to it
	for _, name := range slices.Sorted(maps.Keys(h.Headers)) {
		line(name, mime.QEncoding.Encode("utf-8", h.Headers[name]))
	}
	line("MIME-Version", "1.0")
	line("Content-Type", contentType)
	line("Content-Transfer-Encoding", encoding)
	b.WriteString("\r\n")
	b.Write(content)
	m.data = b.Bytes()
	return m, nil
}

// list writes a header of addresses, one on each line.
func list(b *bytes.Buffer, name string, all []address) {
	for i, a := range all {
		if i == 0 {
			b.WriteString(name + ": ")
		} else {
			b.WriteString(",\r\n ")
		}
		b.WriteString(a.header())
	}
	if len(all) > 0 {
		b.WriteString("\r\n")
	}
}

// messageID is the same whenever the same mail is sent by an attempt that is repeated.
func messageID(h *head, body []byte, domain string, caller *access.Caller, number int) string {
	text, err := json.Marshal([]any{caller.Run, caller.Task, caller.Key, number, h, sha256.Sum256(body)})
	if err != nil {
		panic(err) // strings and numbers
	}
	sum := sha256.Sum256(text)
	return "<" + hex.EncodeToString(sum[:16]) + "@" + domain + ">"
}

// encode returns the body in a form that every server passes on, unless it is a multipart
// entity, which has encodings of its own.
func (m *message) encode(body []byte, media string) (encoding string, content []byte, fault *access.Fault) {
	kind, _, _ := strings.Cut(media, "/")
	var b bytes.Buffer
	switch kind {
	case "text":
		w := quotedprintable.NewWriter(&b)
		_, _ = w.Write(body) // the buffer takes everything
		_ = w.Close()
		return "quoted-printable", b.Bytes(), nil
	case "multipart":
		return m.asItIs(body)
	}
	text := base64.StdEncoding.EncodeToString(body)
	for len(text) > 76 {
		b.WriteString(text[:76] + "\r\n")
		text = text[76:]
	}
	b.WriteString(text)
	return "base64", b.Bytes(), nil
}

// asItIs returns a body whose lines end with CRLF. A CR alone is refused: some servers end a
// line there, and so what follows could be a command.
func (m *message) asItIs(body []byte) (encoding string, content []byte, fault *access.Fault) {
	content = bytes.ReplaceAll(bytes.ReplaceAll(body, []byte("\r\n"), []byte("\n")), []byte("\n"), []byte("\r\n"))
	for line := range bytes.SplitSeq(content, []byte("\r\n")) {
		if bytes.ContainsAny(line, "\r\x00") {
			return "", nil, invalid("the body has a carriage return or a zero byte within a line: encode the part in base64")
		}
		if len(line) > 998 {
			return "", nil, invalid("the body has a line of more than 998 bytes: encode the part as quoted-printable or in base64")
		}
	}
	encoding = "7bit"
	if m.wide = bytes.ContainsFunc(content, func(r rune) bool { return r > '~' }); m.wide {
		encoding = "8bit"
	}
	return encoding, content, nil
}
