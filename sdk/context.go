package sdk

import (
	"context"
	"log/slog"
	"time"

	"github.com/flowhost/flowhost/sdk/abi"
	"github.com/flowhost/flowhost/sdk/internal/guest"
)

// Identity identifies a call: flow, run, task, attempt. Its
// IdempotencyKey is the same for all attempts of a task run.
type Identity = abi.Identity

// Context is one call of a function. It ends with the call.
//
// As a context.Context it has the attempt's deadline and is canceled with the
// run or the task. A guest has one thread, so the end is noticed where somebody
// looks: Err, Canceled and each call of Done ask the host. Once Done was called, as
// a context that is derived from this one does, a goroutine looks too, whenever
// the function waits: for a channel, for a timer, for time to pass. A function
// that computes must look by itself, at this context and not at a derived one.
type Context interface {
	context.Context

	// Canceled reports whether the call is being canceled, and then how long the
	// function may take, in real time, to come to its end: to undo, to tidy up, to
	// report how far it got. After that it is ended wherever it is. Its output does
	// not count any more; the message and the details of an error that it returns
	// do. Sleeping takes no time any more.
	Canceled() (left time.Duration, canceled bool)

	// Call identifies the call.
	Call() Identity

	// Config decodes the config of the task and its plugin into v, a pointer. A
	// task without config leaves v as it is, so defaults can be set before. An
	// error names the field that does not fit; returned by the function, it
	// fails the call with the code "config", not retryable.
	Config(v any) error

	// Log writes into the log of the attempt. Attributes and groups become the
	// fields of the line. Every level is passed on; what is kept is the host's
	// decision.
	Log() *slog.Logger

	// Fetch makes an HTTP request by a connection of the flow, whose base URL and
	// credentials the host adds. The connection "" is the task's http grant: URLs are
	// whole then. A response is one whatever its status is.
	Fetch(connection string, r Request) (*Response, error)

	// KV is a bucket of keys and values that the flow grants.
	KV(bucket string) KV

	// Publish sends a message to a subject that the flow grants. It returns once the server
	// has it; where a stream stores the subject, once the stream has it. A retry of the
	// attempt publishes the same message once.
	Publish(subject string, data []byte) error

	// Request sends a message to a subject that the flow grants, and waits for the answer.
	Request(subject string, data []byte) ([]byte, error)

	// Artifact stores what is too large for an output. See [Artifact] for how it becomes
	// part of one.
	Artifact(name string) (*ArtifactWriter, error)

	// OpenArtifact reads an artifact that the input names.
	OpenArtifact(a Artifact) (*ArtifactReader, error)

	// Secret returns a secret that the flow hands to the task under that name. A connection
	// keeps credentials out of the plugin: prefer one.
	Secret(name string) (string, error)

	// Mail sends a message by a connection of type smtp.
	Mail(connection string, m Mail) error

	// Progress reports how far the attempt has come, from 0 to 1, with a few words for people,
	// in the log. It is a heartbeat, too.
	Progress(fraction float64, message string)

	// Heartbeat says that the attempt is alive. A task with heartbeat = "30s" fails if nothing
	// is heard of it for so long: it may be stuck.
	Heartbeat()
}

// guestCall is embedded under a name of its own: Call is a method.
type guestCall = guest.Call

// call is a Context.
type call struct{ *guestCall }

// ContextOf is the context of a call, for package sdktest.
func ContextOf(c *guest.Call) Context { return call{c} }

// operate performs an operation of the call. It calls member for each member of the head of
// its answer, unless that is nil.
func (c call) operate(kind string, head *guest.Head, body []byte, member func(name string, value []byte)) ([]byte, error) {
	reply, err := c.Operate(c.guestCall, kind, head, body)
	if err == nil && member != nil {
		guest.Members(reply.Head, member)
	}
	return reply.Body, err
}
