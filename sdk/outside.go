package sdk

import (
	"strconv"

	"github.com/flowhost/flowhost/sdk/abi"
	"github.com/flowhost/flowhost/sdk/internal/guest"
)

// OperationError is why something outside could not be reached. Returned by a function, it
// fails the call with its code, and retryable if it is.
type OperationError = abi.Fault

// Errors of operations, for errors.Is.
var (
	ErrDenied      error = &abi.Fault{Code: "denied", Message: "denied"}           // not granted, or refused by a rule
	ErrUnreachable error = &abi.Fault{Code: "unreachable", Message: "unreachable"} // nobody answered
	ErrTimeout     error = &abi.Fault{Code: "timeout", Message: "timeout"}
	ErrTooLarge    error = &abi.Fault{Code: "too_large", Message: "too large"}
	ErrConflict    error = &abi.Fault{Code: "conflict", Message: "conflict"}   // another revision, or a key that exists
	ErrNotFound    error = &abi.Fault{Code: "not_found", Message: "not found"} // a key, an artifact
)

// Progress implements Context.
func (c call) Progress(fraction float64, message string) {
	var head guest.Head
	head.Raw("fraction", strconv.FormatFloat(min(max(fraction, 0), 1), 'g', -1, 64))
	head.Text("message", message)
	_, _ = c.operate("progress", &head, nil, nil) // for people only
}

// Heartbeat implements Context.
func (c call) Heartbeat() { _, _ = c.operate("heartbeat", new(guest.Head), nil, nil) }

// Secret implements Context.
func (c call) Secret(name string) (string, error) {
	var head guest.Head
	head.Text("name", name)
	value, err := c.operate("secret", &head, nil, nil)
	return string(value), err
}

// Mail is a message to be sent.
type Mail struct {
	To          []string
	CC          []string
	ReplyTo     string
	Subject     string
	ContentType string // default: text/plain; charset=utf-8
	Body        []byte
}

// Mail implements Context.
func (c call) Mail(connection string, m Mail) error {
	var head guest.Head
	head.Text("connection", connection)
	head.Texts("to", m.To)
	head.Texts("cc", m.CC)
	head.Text("reply_to", m.ReplyTo)
	head.Text("subject", m.Subject)
	head.Text("content_type", m.ContentType)
	_, err := c.operate("mail", &head, m.Body, nil)
	return err
}
