package abi

import "encoding/json"

// Imports of [Module] by which a guest reaches the world outside. An operation is started,
// waited for, read and closed; several may be under way. What a kind of operation takes and
// gives is a head, a JSON object, and a body. A guest without these imports opens the file
// [DoorFile] instead.
const (
	ImportOpStart = "op_start" // (kind, kindLen, head, headLen, body, bodyLen i32) i32: a ticket, from 1; EINVAL, E2BIG, EMFILE, ENOSPC
	ImportOpWait  = "op_wait"  // (tickets, count, timeoutMS i32) i32: the index of one that has ended; tickets are i32 in little-endian order, a negative timeout waits for the end of the call; EAGAIN when none has, EBADF
	ImportOpRead  = "op_read"  // (ticket, part, offset, ptr, len i32) i32: bytes that were copied; with len 0 the size that is left; EBADF, EAGAIN; of the body of an operation that failed, its number
	ImportOpClose = "op_close" // (ticket i32) i32: 0; EBADF. An operation that is under way is canceled
)

// Parts of an answer. The head of an operation that failed is a fault: an object with code,
// message, target, rule, add, retryable, retry_after_ms.
const (
	PartHead int32 = 0
	PartBody int32 = 1
)

// MaxTickets is how many tickets one op_wait takes.
const MaxTickets = 64

// DoorFile is a file of which each opening is one operation. The guest writes a line with
// the kind and the head, http {"method":"GET","url":"https://example.com/"}, and then the
// body. Reading, or polling for it, starts the operation and gives a line with ok or fault,
// the size of the body in bytes, and the head of the answer, and then the body. Closing the
// file closes the operation. It can be polled, so a guest may have several under way.
const DoorFile = "/.door"

// Fault is the head of the answer to an operation that was not performed.
type Fault struct {
	Code         string `json:"code"` // denied, invalid, unreachable, timeout, too_large, conflict, not_found, refused, budget, canceled, damaged, internal
	Message      string `json:"message"`
	Target       string `json:"target,omitempty"` // what was asked for, without credentials
	Rule         string `json:"rule,omitempty"`   // that refused it
	Add          string `json:"add,omitempty"`    // the line that would grant it
	Detail       string `json:"detail,omitempty"` // of the other side: an SQLSTATE
	Retryable    bool   `json:"retryable,omitempty"`
	RetryAfterMS int64  `json:"retry_after_ms,omitempty"`
}

func (f *Fault) Error() string { return f.Message }

// Is reports whether the target is a fault of the same code.
func (f *Fault) Is(target error) bool {
	t, ok := target.(*Fault)
	return ok && t.Code == f.Code
}

// Failure is the fault as the failure of a call that returns it.
func (f *Fault) Failure() Failure {
	details, err := json.Marshal(f)
	if err != nil { // texts and numbers
		details = nil
	}
	return Failure{Code: f.Code, Message: f.Message, Retryable: f.Retryable, RetryAfterMS: f.RetryAfterMS, Details: details}
}
