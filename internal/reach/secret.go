package reach

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/flowhost/flowhost/run/access"
)

// secret hands a secret to the guest, which takes the flow's word and the operator's.
func (a *Attempt) secret(ctx context.Context, op *access.Operation) access.Answer {
	var head struct {
		Name string `json:"name"`
	}
	if err := DecodeHead(op, &head); err != nil {
		return access.Answer{Fault: err}
	}
	policy := a.Policy()
	name, granted := policy.Grants.Secrets[head.Name]
	if !granted {
		return denied("not granted", head.Name, fmt.Sprintf("grant { secrets = { %s = secret.NAME } }", head.Name), "secret %q is not granted to the task", head.Name)
	}
	if allow := policy.Allow; allow == nil || !access.Names(allow.Secrets, name) {
		return denied(access.RuleOperator, name, fmt.Sprintf("secrets = [%q], in allow %q { … } of the settings", name, a.Flow),
			"secret %q is handed to a task only if the operator allows it, too", name)
	}
	if a.reach.config.Secrets == nil {
		return denied("missing", name, "", "there are no secrets here")
	}
	value, err := a.reach.config.Secrets.Resolve(ctx, a.Flow, name)
	if err != nil {
		return access.Answer{Fault: FaultOf(err)}
	}
	return access.Answer{Head: []byte("{}"), Body: []byte(value)}
}

// DecodeHead decodes the head of an operation. Members that the kind does not have are
// refused: a guest that states more than is understood would rely on it.
func DecodeHead(op *access.Operation, into any) *access.Fault {
	d := json.NewDecoder(bytes.NewReader(op.Head))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return &access.Fault{Code: access.CodeInvalid, Message: fmt.Sprintf("the head of the operation %s: %v", op.Kind, err)}
	}
	return nil
}

// FaultOf is an error as a fault.
func FaultOf(err error) *access.Fault {
	if f, ok := errors.AsType[*access.Fault](err); ok {
		return f
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return &access.Fault{Code: access.CodeTimeout, Message: err.Error(), Retryable: true}
	case errors.Is(err, context.Canceled):
		return &access.Fault{Code: access.CodeCanceled, Message: err.Error()}
	}
	return &access.Fault{Code: access.CodeInternal, Message: err.Error(), Retryable: true}
}
