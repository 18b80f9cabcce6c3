package sqlreach

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/flowhost/flowhost/run/access"
)

// maxMessage is how many bytes of a database's message a fault repeats.
const maxMessage = 512

func invalid(format string, args ...any) *access.Fault {
	return &access.Fault{Code: access.CodeInvalid, Message: fmt.Sprintf(format, args...)}
}

func denied(rule, format string, args ...any) *access.Fault {
	return &access.Fault{Code: access.CodeDenied, Rule: rule, Message: fmt.Sprintf(format, args...)}
}

func readOnly(keyword string) *access.Fault {
	f := denied(`access = "ro"`, `%s changes the database, and the connection is declared with access = "ro"`, keyword)
	f.Add = `access = "rw"`
	return f
}

func conflict(format string, args ...any) *access.Fault {
	return &access.Fault{Code: access.CodeConflict, Message: fmt.Sprintf(format, args...)}
}

func unreachable(format string, args ...any) *access.Fault {
	return &access.Fault{Code: access.CodeUnreachable, Message: fmt.Sprintf(format, args...), Retryable: true}
}

// ended is the fault of an operation whose context is over; nil while it is not.
func ended(ctx context.Context) *access.Fault {
	switch {
	case ctx.Err() == nil:
		return nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return timedOut()
	}
	return &access.Fault{Code: access.CodeCanceled, Message: "the operation was canceled: the attempt ended meanwhile"}
}

func timedOut() *access.Fault {
	return &access.Fault{Code: access.CodeTimeout, Retryable: true,
		Message: "the statement was canceled: the time of the attempt is used up; make the statement faster or the timeout longer"}
}

// broken reports whether an error means that the connection is of no use any more.
func broken(err error) bool {
	var network net.Error
	return errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) || errors.Is(err, io.EOF) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) || errors.As(err, &network)
}

// statementFault is the fault of an error of a statement.
func (p *pool) statementFault(ctx context.Context, err error) *access.Fault {
	var own *access.Fault
	if errors.As(err, &own) {
		return own
	}
	if f := ended(ctx); f != nil {
		return f
	}
	if f := p.engine.fault(err); f != nil {
		f.Message = scrub(p.hide, f.Message)
		return f
	}
	if broken(err) {
		return unreachable("the connection to the database broke: another attempt gets a new one")
	}
	return &access.Fault{Code: access.CodeRefused, Message: "the statement failed: " + scrub(p.hide, err.Error())}
}

// scrub takes parts of the DSN out of a message of the database, and bounds it.
func scrub(parts []*regexp.Regexp, text string) string {
	for _, hide := range parts {
		text = hide.ReplaceAllString(text, "…")
	}
	text = strings.ToValidUTF8(text, "�")
	if len(text) <= maxMessage {
		return text
	}
	cut := maxMessage
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}

// hiding makes the patterns that find parts of a DSN, as whole words and the longest first.
func hiding(parts []string) []*regexp.Regexp {
	parts = slices.Clone(parts)
	slices.SortFunc(parts, func(a, b string) int { return len(b) - len(a) })
	var all []*regexp.Regexp
	for _, part := range slices.Compact(parts) {
		if part == "" {
			continue
		}
		pattern := regexp.QuoteMeta(part)
		if isWord(part[0]) && part[0] < 0x80 {
			pattern = `\b` + pattern
		}
		if last := part[len(part)-1]; isWord(last) && last < 0x80 {
			pattern += `\b`
		}
		if found, err := regexp.Compile(pattern); err == nil { // it fails for what is not UTF-8, which no message is either
			all = append(all, found)
		}
	}
	return all
}

// server is what PostgreSQL, MySQL and MariaDB report in common.
type server struct {
	code    string // for Detail
	state   string // SQLSTATE
	message string
}

// fault judges by the class of the SQLSTATE.
func (s server) fault() *access.Fault {
	f := &access.Fault{Code: access.CodeRefused, Message: "the database refused the statement: " + s.message, Detail: s.code}
	class := s.state
	if len(class) == 5 {
		class = class[:2]
	}
	switch {
	case s.state == "25006":
		f.Code, f.Rule, f.Add = access.CodeDenied, `access = "ro"`, `access = "rw"`
		f.Message = "the statement would change the database within a read-only transaction: " + s.message
	case s.state == "57014":
		f.Code, f.Retryable = access.CodeTimeout, true
		f.Message = "the database canceled the statement: " + s.message
	case class == "40", s.state == "55P03":
		f.Code, f.Retryable = access.CodeConflict, true
		f.Message = "the transaction collided with another one: " + s.message
	case class == "08", class == "53", class == "57", class == "58":
		f.Code, f.Retryable = access.CodeUnreachable, true
		f.Message = "the database is not available: " + s.message
	}
	return f
}
