package guest

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/flowhost/flowhost/sdk/abi"
)

// Reply is the answer to an operation that was performed.
type Reply struct {
	Head json.RawMessage
	Body []byte
}

// Operator performs operations: a call does.
type Operator interface {
	Operate(ctx context.Context, kind string, head any, body []byte) (Reply, error)
}

// Operate performs an operation. It fails with an *[abi.Fault], or with the error of ctx,
// which is the call or derived from it, when that ended before.
func (c *Call) Operate(ctx context.Context, kind string, head any, body []byte) (Reply, error) {
	text, err := Encode(head)
	if err != nil {
		return Reply{}, &abi.Fault{Code: "invalid", Message: fmt.Sprintf("%s: %v", kind, err)}
	}
	if ctx == context.Context(c) {
		ctx = context.WithoutCancel(ctx) // the host ends the operations of a call with it
	}
	return c.host.Operate(ctx, kind, text, body)
}

// Decode decodes the head of a reply.
func (r *Reply) Decode(v any) error {
	if err := json.Unmarshal(r.Head, v); err != nil {
		return &abi.Fault{Code: "internal", Message: "the host's answer: " + err.Error()}
	}
	return nil
}
