package bustest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/flowhost/flowhost/bus/health"
)

// Watch runs a watcher with the test.
func Watch(t *testing.T, cfg health.Config) *health.Watcher {
	t.Helper()
	cfg.Every = 5 * time.Millisecond
	h := health.New(cfg)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- h.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Run = %v", err)
		}
	})
	return h
}

// Unready waits until the watcher finds something, whose text holds the part.
func Unready(t *testing.T, h *health.Watcher, part string) *health.UnreadyError {
	t.Helper()
	var found *health.UnreadyError
	Eventually(t, "not ready: "+part, func() bool {
		return errors.As(h.Ready(), &found) && strings.Contains(found.Error(), part)
	})
	if found.Since.IsZero() || found.Advice == "" {
		t.Errorf("%+v does not say since when, or what to do", found)
	}
	return found
}

func Ready(t *testing.T, h *health.Watcher) {
	t.Helper()
	Eventually(t, "ready again", func() bool { return h.Ready() == nil })
}
