package sdk

import "github.com/flowhost/flowhost/sdk/abi"

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
	_, _ = c.operate("progress", progressHead{fraction, message}, nil, nil) // for people only
}

type progressHead struct {
	Fraction float64 `json:"fraction"`
	Message  string  `json:"message,omitempty"`
}

// Secret implements Context.
func (c call) Secret(name string) (string, error) {
	value, err := c.operate("secret", struct {
		Name string `json:"name"`
	}{name}, nil, nil)
	return string(value), err
}

// Mail is a message to be sent.
type Mail struct {
	To          []string `json:"to"`
	CC          []string `json:"cc,omitempty"`
	ReplyTo     string   `json:"reply_to,omitempty"`
	Subject     string   `json:"subject"`
	ContentType string   `json:"content_type,omitempty"` // default: text/plain; charset=utf-8
	Body        []byte   `json:"-"`
}

// Mail implements Context.
func (c call) Mail(connection string, m Mail) error {
	_, err := c.operate("mail", struct {
		Connection string `json:"connection"`
		Mail
	}{connection, m}, m.Body, nil)
	return err
}
