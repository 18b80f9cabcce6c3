package ops_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/flowhost/flowhost/bus/internal/ops"
	"github.com/flowhost/flowhost/run/access"
)

func TestHead(t *testing.T) {
	t.Parallel()
	tests := []struct {
		head string
		want string // code of the fault
	}{
		{``, ""},
		{`{}`, ""},
		{` {"name":"a"} `, ""},
		{`{"name":"a","other":1}`, access.CodeInvalid},
		{`{"name":1}`, access.CodeInvalid},
		{`{"name":"a"}{}`, access.CodeInvalid},
		{`{"name":"a"} x`, access.CodeInvalid},
		{`[]`, access.CodeInvalid},
		{`{`, access.CodeInvalid},
		{`{"name":"` + strings.Repeat("a", 64<<10) + `"}`, access.CodeTooLarge},
		{strings.Repeat("[", 60_000), access.CodeInvalid},
	}
	for _, test := range tests {
		var h struct{ Name string }
		fault := ops.Head(&access.Operation{Kind: "kv.get", Head: json.RawMessage(test.head)}, &h)
		if got := code(fault); got != test.want {
			t.Errorf("%.40s: %q, want %q", test.head, got, test.want)
		}
	}
}

func code(f *access.Fault) string {
	if f == nil {
		return ""
	}
	return f.Code
}

// TestWire has errors as NATS gives them: none of their texts gets out.
func TestWire(t *testing.T) {
	t.Parallel()
	const secret = "OBJ_FH_SECRET"
	api := func(status int, code jetstream.ErrorCode, text string) error {
		return fmt.Errorf("stream %s: %w", secret, &jetstream.APIError{Code: status, ErrorCode: code, Description: text + " " + secret})
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	tests := []struct {
		name      string
		ctx       context.Context
		err       error
		code      string
		retryable bool
		detail    string
	}{
		{"nobody answers", t.Context(), errors.New(secret), access.CodeUnreachable, true, ""},
		{"one request takes too long", t.Context(), context.DeadlineExceeded, access.CodeUnreachable, true, ""},
		{"the connection is closed", t.Context(), nats.ErrConnectionClosed, access.CodeUnreachable, true, ""},
		{"the attempt has no time left", late, context.DeadlineExceeded, access.CodeTimeout, true, ""},
		{"the attempt is canceled", canceled, context.Canceled, access.CodeCanceled, false, ""},
		{"too large for a message", t.Context(), nats.ErrMaxPayload, access.CodeTooLarge, false, ""},
		{"the stream is full", t.Context(), api(503, 10077, "maximum bytes exceeded"), access.CodeTooLarge, false, ""},
		{"the disk is full", t.Context(), api(500, 10047, "insufficient storage"), access.CodeTooLarge, false, ""},
		{"no leader", t.Context(), api(503, 10008, "temporarily unavailable"), access.CodeUnreachable, true, "NATS 10008"},
		{"too many wait", t.Context(), api(429, 10167, "too many requests"), access.CodeUnreachable, true, "NATS 10167"},
		{"too large for a stream", t.Context(), api(400, 10054, "message size exceeds maximum allowed"), access.CodeTooLarge, false, ""},
		{"a sealed stream", t.Context(), api(400, 10109, "invalid operation on sealed stream"), access.CodeRefused, false, "NATS 10109"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			f := ops.Wire(test.ctx, "kv.put", test.err)
			if f.Code != test.code || f.Retryable != test.retryable || f.Detail != test.detail {
				t.Errorf("%+v, want %s, retryable %t, %q", f, test.code, test.retryable, test.detail)
			}
			if answer := ops.Failed(f); strings.Contains(string(answer.Head), secret) {
				t.Errorf("%s contains what NATS says", answer.Head)
			}
		})
	}
}
