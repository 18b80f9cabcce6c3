package mail

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/textproto"
	"regexp"
	"strings"

	"github.com/flowhost/flowhost/internal/reach/netreason"
	"github.com/flowhost/flowhost/run/access"
)

func invalid(format string, args ...any) *access.Fault {
	return &access.Fault{Code: access.CodeInvalid, Message: fmt.Sprintf(format, args...)}
}

// asFault is the fault that an error is, or wraps.
func asFault(err error) *access.Fault {
	if fault, ok := errors.AsType[*access.Fault](err); ok {
		return fault
	}
	return &access.Fault{Code: access.CodeInternal, Message: "the mail failed within the host"}
}

// ended is the fault of an operation whose context has ended; nil: it has not.
func ended(ctx context.Context) *access.Fault {
	switch err := ctx.Err(); {
	case err == nil:
		return nil
	case errors.Is(err, context.DeadlineExceeded):
		return &access.Fault{Code: access.CodeTimeout, Message: "the mail was not sent: its time is over", Retryable: true}
	}
	return &access.Fault{Code: access.CodeCanceled, Message: "the mail was not sent: it was canceled", Retryable: true}
}

// fault is what an error during a step of the session means.
func (s *session) fault(step string, err error) *access.Fault {
	if fault, ok := errors.AsType[*access.Fault](err); ok {
		return fault
	}
	if fault := ended(s.ctx); fault != nil {
		fault.Target = s.server
		return fault
	}
	if reply, ok := errors.AsType[*textproto.Error](err); ok {
		text := strings.TrimSpace(fmt.Sprint(reply.Code, " ", s.quote(reply.Msg)))
		return &access.Fault{
			Code: access.CodeRefused, Target: s.server, Detail: text, Retryable: reply.Code >= 400 && reply.Code < 500,
			Message: fmt.Sprintf("the mail was not sent: %s refused %s: %s", s.server, step, text),
		}
	}
	fault := &access.Fault{Code: access.CodeUnreachable, Target: s.server, Retryable: true}
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		fault.Code, fault.Message = access.CodeTimeout, fmt.Sprintf("the mail was not sent: %s did not answer in time: %s", s.server, step)
		return fault
	}
	full := *fault
	full.Message = fmt.Sprintf("the mail was not sent: %s with %s failed: %s", step, s.server, s.quote(err.Error()))
	fault.Message, fault.Inside = fmt.Sprintf("the mail was not sent: %s with %s failed: %s", step, s.server, netreason.Of(err)), &full
	return fault
}

// concealed is a fault for the guest, which sees the name of the connection instead of the
// server's address.
func (s *session) concealed(fault *access.Fault) *access.Fault {
	if fault == nil {
		return nil
	}
	guest, full := *fault, *fault.Full()
	full.Inside = nil
	guest.Target, guest.Inside = s.name, &full
	if guest.Rule == "private address" {
		guest.Message = fmt.Sprintf("the mail was not sent: the address of connection %q is not public, and the connection or the operator does not name it", s.name)
		guest.Add = ""
	}
	for _, text := range []*string{&guest.Message, &guest.Add, &guest.Detail} {
		*text = s.conceal(*text)
	}
	return &guest
}

// conceal takes the server's address and the user out of a text.
func (s *session) conceal(text string) string {
	text = strings.ReplaceAll(text, s.server, "the server")
	for _, hide := range s.hide {
		text = hide.ReplaceAllString(text, "…")
	}
	return text
}

// hiding makes patterns that find names as whole words.
func hiding(names ...string) []*regexp.Regexp {
	var all []*regexp.Regexp
	for _, name := range names {
		if name != "" {
			all = append(all, regexp.MustCompile(`(?i)(^|\b)`+regexp.QuoteMeta(name)+`(\b|$)`))
		}
	}
	return all
}

// errLogin stands for an error that may have what was sent.
var errLogin = errors.New("the server broke off, or does not follow the protocol")

// withoutText is an error of a login without the server's words, which may repeat what was
// sent in any form.
func withoutText(err error) error {
	if reply, ok := errors.AsType[*textproto.Error](err); ok {
		return &textproto.Error{Code: reply.Code}
	}
	return errLogin
}

// quote is a line of ASCII that is made of a server's text.
func (s *session) quote(text string) string { return printable(s.secrets.String(text)) }

// maxReply bounds what is quoted of a server's reply.
const maxReply = 200

// printable is the beginning of a text as one line of ASCII.
func printable(text string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case r == '\n':
			return ' '
		case r < ' ':
			return -1
		case r > '~':
			return '?'
		}
		return r
	}, text)
	return text[:min(len(text), maxReply)]
}
