package jskit

import (
	"errors"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/flowhost/flowhost/run"
)

// Error codes of JetStream that nats.go does not name.
// Source: nats-server, server/errors.json.
const (
	codeAccountFull     = 10002 // "resource limits exceeded for account"
	codeStorageFull     = 10047 // "insufficient storage resources available"
	codeWrongLastID     = 10070 // "wrong last msg ID: {id}"
	codeStoreFailed     = 10077 // several things, which the description distinguishes
	codeDuplicateStored = 10158 // "duplicate message id is in process"
	codeTooManyRequests = 10167 // "too many requests": messages that wait to be stored in the stream fill its buffer
)

// ErrNoRoom reports that the disk of the embedded server is full.
var ErrNoRoom = errors.New("the disk of the data directory is full")

// apiCode is the code and description of a JetStream error in err's tree.
func apiCode(err error) (code int, description string) {
	var api *jetstream.APIError
	if errors.As(err, &api) {
		return int(api.ErrorCode), api.Description
	}
	return 0, ""
}

// IsConflict reports whether a message was refused because the subject's last one
// is not the expected one.
func IsConflict(err error) bool {
	code, _ := apiCode(err)
	return code == int(jetstream.JSErrCodeStreamWrongLastSequence) ||
		code == int(jetstream.JSErrCodeStreamWrongLastSequenceConstant)
}

// IsFull reports whether a message was refused for want of room.
func IsFull(err error) bool {
	code, description := apiCode(err)
	switch code {
	case codeAccountFull, codeStorageFull:
		return true
	case codeStoreFailed:
		return strings.Contains(description, "maximum bytes exceeded") || strings.Contains(description, "maximum messages exceeded")
	}
	return false
}

// IsBusy reports whether a message was refused because too many others wait to be stored. It
// has not been stored, and can be sent again.
func IsBusy(err error) bool {
	code, _ := apiCode(err)
	return code == codeTooManyRequests
}

// Permanent reports whether a repetition would fail as well. Whatever is not known
// to last is taken to pass: a server that is away, without a leader, or stuck.
func Permanent(err error) bool {
	for _, target := range []error{
		run.ErrFenced, nats.ErrConnectionClosed, nats.ErrMaxPayload, nats.ErrBadSubject,
	} {
		if errors.Is(err, target) {
			return true
		}
	}
	var api *jetstream.APIError
	if !errors.As(err, &api) {
		return false
	}
	switch int(api.ErrorCode) {
	case codeDuplicateStored, codeTooManyRequests, codeWrongLastID, int(jetstream.JSErrCodeStreamNotFound), int(jetstream.JSErrCodeConsumerNotFound):
		return false
	case codeStoreFailed:
		return true
	}
	return api.Code >= 400 && api.Code < 500
}

// Usable reports why nothing can be sent at the moment. Without the question a
// message would be kept by the connection and sent when it is made again, once for
// each attempt.
func Usable(nc *nats.Conn) error {
	switch {
	case nc.IsClosed():
		return nats.ErrConnectionClosed
	case !nc.IsConnected():
		return nats.ErrConnectionReconnecting
	}
	return nil
}
