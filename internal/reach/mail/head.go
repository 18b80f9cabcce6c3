package mail

import (
	"bytes"
	"encoding/json"
	"maps"
	"mime"
	"net/textproto"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/flowhost/flowhost/run/access"
)

// Bounds of a message.
const (
	maxHead       = 256 << 10
	maxBody       = 10 << 20
	maxRecipients = 100
	maxHeaders    = 50
	maxLine       = 900 // of a header's value; a line has at most 998 bytes
)

// head is what a guest asks for.
type head struct {
	Connection  string            `json:"connection"`
	To          []string          `json:"to"`
	Cc          []string          `json:"cc"`
	Subject     string            `json:"subject"`
	ReplyTo     string            `json:"reply_to"`
	ContentType string            `json:"content_type"`
	Headers     map[string]string `json:"headers"`
}

// parseHead decodes and checks what needs no connection.
func parseHead(op *access.Operation) (*head, *access.Fault) {
	if op.Kind != access.KindMail {
		return nil, invalid("an operation of kind %.50q is no mail", op.Kind)
	}
	if len(op.Head) > maxHead {
		return nil, invalid("the head of the mail is longer than %d bytes", maxHead)
	}
	if len(op.Body) > maxBody {
		return nil, &access.Fault{Code: access.CodeTooLarge, Message: "the mail was not sent: its body has more than 10 MiB"}
	}
	const form = `write {"connection":"NAME","to":["ops@example.com"],"subject":"…"}`
	var h head
	decoder := json.NewDecoder(bytes.NewReader(op.Head))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&h); err != nil {
		return nil, invalid("the head of the mail is not as documented: %s: %s", strings.TrimPrefix(err.Error(), "json: "), form)
	}
	if decoder.InputOffset() != int64(len(bytes.TrimRight(op.Head, " \t\r\n"))) {
		return nil, invalid("the head of the mail is more than one JSON value: %s", form)
	}
	switch n := len(h.To) + len(h.Cc); {
	case h.Connection == "":
		return nil, invalid("the mail names no connection: %s", form)
	case n == 0:
		return nil, invalid("the mail has no recipients: %s", form)
	case n > maxRecipients:
		return nil, invalid("the mail has %d recipients, and %d are the most", n, maxRecipients)
	case h.Subject == "":
		return nil, invalid("the mail has no subject: %s", form)
	case len(h.Headers) > maxHeaders:
		return nil, invalid("the mail has %d headers, and %d are the most", len(h.Headers), maxHeaders)
	}
	if fault := checkText("subject", h.Subject); fault != nil {
		return nil, fault
	}
	return &h, h.canonicalHeaders()
}

// checkText refuses what would end a header's line, and what is too long for one.
func checkText(member, text string) *access.Fault {
	switch {
	case !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }):
		return invalid("%s: line breaks and other control characters are not allowed", member)
	case len(text) > maxLine:
		return invalid("%s: it is longer than %d bytes", member, maxLine)
	case strings.Contains(text, "=?"):
		return invalid("%s: it has \"=?\", which begins an encoded word: pass the text itself", member)
	}
	return nil
}

// guestHeaders are the headers that a guest may set, beside X-*. All others belong to the
// host, or direct a mail to others.
var guestHeaders = []string{
	"Importance", "In-Reply-To", "Keywords", "List-Id", "List-Unsubscribe", "List-Unsubscribe-Post",
	"Organization", "Precedence", "Priority", "References",
}

// canonicalHeaders writes the names in one way and checks names and values.
func (h *head) canonicalHeaders() *access.Fault {
	canonical := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(h.Headers)) {
		value := h.Headers[name]
		known := textproto.CanonicalMIMEHeaderKey(name)
		extra := strings.HasPrefix(known, "X-") && len(name) > 2 && len(name) <= 70 &&
			!strings.ContainsFunc(name, func(r rune) bool { return !isAlphanumeric(r) && r != '-' && r != '_' })
		if !extra && !slices.Contains(guestHeaders, known) {
			return invalid("header %.50q cannot be set: a mail may have X-… and %s", name, strings.Join(guestHeaders, ", "))
		}
		if _, ok := canonical[known]; ok {
			return invalid("header %s is set twice", known)
		}
		if fault := checkText("header "+known, value); fault != nil {
			return fault
		}
		canonical[known] = value
	}
	h.Headers = canonical
	return nil
}

// contentType returns the type of the body in its canonical form.
func (h *head) contentType() (text, media string, fault *access.Fault) {
	if h.ContentType == "" {
		return "text/plain; charset=utf-8", "text/plain", nil
	}
	if fault := checkText("content_type", h.ContentType); fault != nil {
		return "", "", fault
	}
	media, parameters, err := mime.ParseMediaType(h.ContentType)
	if err != nil || !strings.Contains(media, "/") {
		return "", "", invalid("content_type: %.100q is no media type: write text/html; charset=utf-8", h.ContentType)
	}
	kind, _, _ := strings.Cut(media, "/")
	switch {
	case kind == "multipart" && parameters["boundary"] == "":
		return "", "", invalid("content_type: %s needs a boundary, which the body has", media)
	case kind == "message":
		return "", "", invalid("content_type: %s is not sent: pass the headers in the head, and its body", media)
	case kind == "text" && parameters["charset"] == "":
		parameters["charset"] = "utf-8"
	}
	text = mime.FormatMediaType(media, parameters)
	if text == "" || len(text) > maxLine {
		return "", "", invalid("content_type: %.100q cannot be written as a header", h.ContentType)
	}
	return text, media, nil
}
