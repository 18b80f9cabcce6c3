package host

import (
	"bytes"
	"encoding/json"
	"io"

	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/sdk/abi"
)

// invocation is the state of one call while its guest runs: what the guest may
// read, and what it has said so far. It belongs to the goroutine of the call.
type invocation struct {
	call     *run.Call
	abi      string
	function string // the name under which the guest serves it
	limits   run.Limits
	memory   *memory
	clock    *clock

	identity  []byte // made when it is asked for
	output    []byte // of the flowhost ABI; nil: none was set
	oversized bool   // the last output was refused for its size
	failure   *abi.Failure

	log    logBuffer
	stdout io.Writer
	stderr *lineWriter
	closed func() // flushes the standard streams
	last   lastWords
}

// newInvocation prepares a call of the named function, with limits that are
// all set. The memory is given to it when it has a lease.
func newInvocation(call *run.Call, abiName, function string, limits run.Limits) *invocation {
	inv := &invocation{
		call: call, abi: abiName, function: function, limits: limits,
		clock: newClock(call.Scheduled),
		log:   logBuffer{limit: limits.Log},
	}
	maxLine := inv.log.maxText()
	inv.stderr = &lineWriter{max: maxLine, emit: func(line string) {
		inv.last.hear(line)
		inv.log.add(abi.LevelInfo, line, nil)
	}}
	inv.closed = inv.stderr.close
	if abiName == ABIWASI {
		inv.stdout = &outputWriter{limit: limits.Output}
		return inv
	}
	stdout := &lineWriter{max: maxLine, emit: func(line string) {
		inv.log.add(abi.LevelInfo, line, nil)
	}}
	inv.stdout = stdout
	inv.closed = func() { stdout.close(); inv.stderr.close() }
	return inv
}

// stdin is where a command finds its input.
func (inv *invocation) stdin() io.Reader {
	if inv.abi != ABIWASI {
		return bytes.NewReader(nil)
	}
	return bytes.NewReader(inv.input())
}

// result is what the guest gave as its output, by the way of its ABI.
func (inv *invocation) result() []byte {
	if w, ok := inv.stdout.(*outputWriter); ok {
		return w.bytes
	}
	return inv.output
}

// field is a part of the call as the guest reads it, nil when there is no such
// field.
func (inv *invocation) field(f abi.Field) []byte {
	switch f {
	case abi.FieldInput:
		return inv.input()
	case abi.FieldConfig:
		return jsonOrNull(inv.call.Config)
	case abi.FieldFunction:
		return []byte(inv.function)
	case abi.FieldIdentity:
		if inv.identity == nil {
			inv.identity = identityOf(inv.call)
		}
		return inv.identity
	}
	return nil
}

func (inv *invocation) input() []byte { return jsonOrNull(inv.call.Input) }

func jsonOrNull(v json.RawMessage) []byte {
	if len(v) == 0 {
		return []byte("null")
	}
	return v
}

func identityOf(call *run.Call) []byte {
	text, err := json.Marshal(abi.Identity{
		Flow: call.Flow, Run: string(call.Run), Task: call.Task, Key: call.Key,
		Attempt: call.Attempt, IdempotencyKey: call.IdempotencyKey(), Scheduled: call.Scheduled.UTC(),
	})
	if err != nil { // a year that RFC 3339 cannot write
		return []byte("null")
	}
	return text
}
