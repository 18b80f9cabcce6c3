package host_test

import (
	"context"
	"crypto/rand"
	"os"
	"sync"
	"testing"

	"github.com/flowhost/flowhost/host"
	"github.com/flowhost/flowhost/run"
)

// A module that comes while the host has no place free is none the worse for it.
func TestModuleThatComesToABusyHost(t *testing.T) {
	t.Parallel()
	h := newHost(t, host.Config{Instances: 1, Queue: -1})
	spinning := callOf(loadBytes(t, h, endless().bytes()), "", "1")
	dispatcher, err := os.ReadFile(guest(t, "dispatcher")) // its manifest is in an export
	if err != nil {
		t.Fatal(err)
	}
	path := writeFile(t, "unknown.wasm", withCustomSection(dispatcher, "n", rand.Text())) // nothing is known of it
	ctx, cancel := context.WithCancelCause(t.Context())
	var calls sync.WaitGroup
	calls.Go(func() { h.Invoke(ctx, spinning) })
	for h.Stats().Running == 0 {
		if err := t.Context().Err(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := h.Signature(t.Context(), path); err == nil {
		t.Error("a manifest was read without a place to run in")
	}
	cancel(run.ErrCanceled)
	calls.Wait()
	if _, err := h.Signature(t.Context(), path); err != nil {
		t.Errorf("once there is a place: %v", err)
	}
}
