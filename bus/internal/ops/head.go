package ops

import (
	"bytes"
	"encoding/json"
	"io"

	"github.com/flowhost/flowhost/run/access"
)

// MaxBody is the size in bytes of the largest body of an operation and of an answer.
const MaxBody = 1 << 20

// maxHead bounds the head of an operation: names, headers, numbers.
const maxHead = 64 << 10

// Head decodes the head of an operation. A field that the kind does not have is refused:
// it would ask for something that is not done.
func Head(op *access.Operation, into any) *access.Fault {
	if len(op.Head) > maxHead {
		return TooLarge("the head of %s has %d bytes, and %d are the most", op.Kind, len(op.Head), maxHead)
	}
	if len(op.Head) == 0 {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(op.Head))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return Invalid("the head of %s cannot be read: %v", op.Kind, err)
	}
	if _, err := d.Token(); err != io.EOF {
		return Invalid("the head of %s cannot be read: it is more than one JSON value", op.Kind)
	}
	return nil
}

// CheckBody bounds the body of an operation.
func CheckBody(op *access.Operation) *access.Fault {
	if len(op.Body) > MaxBody {
		return TooLarge("the body of %s has %d bytes, and %d are the most: store it as an artifact and pass its digest", op.Kind, len(op.Body), MaxBody)
	}
	return nil
}

// NoBody refuses a body where the kind has none.
func NoBody(op *access.Operation) *access.Fault {
	if len(op.Body) > 0 {
		return Invalid("%s takes no body", op.Kind)
	}
	return nil
}

// Done is the answer of an operation that was performed. The head is a struct or a map that
// JSON can represent.
func Done(head any, body []byte) access.Answer {
	text, err := json.Marshal(head)
	if err != nil {
		return Failed(&access.Fault{Code: access.CodeInternal, Message: "the head of the answer cannot be written"})
	}
	return access.Answer{Head: text, Body: body}
}

// Failed is the answer of an operation that was not performed.
func Failed(f *access.Fault) access.Answer {
	text, err := json.Marshal(f)
	if err != nil {
		text = json.RawMessage("{}") // texts, numbers and flags: it does not happen
	}
	return access.Answer{Head: text, Fault: f}
}
