package access

import "context"

// Deployed is the connections and secrets of the flows that are deployed now, and of the
// host's settings. Names are resolved when an operation needs them.
type Deployed interface {
	// Connection is the connection of that name as a flow sees it; nil when there is none.
	Connection(flow, name string) *Connection

	// Secret is the secret of that name as a flow sees it; nil when there is none.
	Secret(flow, name string) *Secret
}

// Secrets gives the values of secrets.
type Secrets interface {
	// Resolve returns the value of a secret. It fails with a *Fault that contains no value.
	Resolve(ctx context.Context, flow, name string) (string, error)
}

// Caller is the attempt for which an operation is performed.
type Caller struct {
	Flow, Run, Task, Key string
	Attempt              int
	IdempotencyKey       string
	Traceparent          string // of the operation, for the other side; empty for none
	Hops                 int    // of the message that started the run, see run.HeaderHops
}

// Resolve returns the value for use, with its secret resolved.
func (v *Value) Resolve(ctx context.Context, secrets Secrets, flow string) (string, error) {
	if v.Secret == "" {
		return v.Text, nil
	}
	return secrets.Resolve(ctx, flow, v.Secret)
}
