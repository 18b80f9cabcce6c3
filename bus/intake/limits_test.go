package intake_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/flowhost/flowhost/bus/intake"
	"github.com/flowhost/flowhost/bus/internal/bustest"
	"github.com/flowhost/flowhost/run"
)

// Answers that are too large for a message come in parts, and the client puts them
// together.
func TestClientLimits(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][]run.LimitStatus{
		"none": nil,
		"some": {{Limit: "api", InUse: 1, Rate: "10/s", Next: noon, Waiting: 7}, {Limit: "billing/db", Concurrency: 3}},
		"many": manyLimits(2000),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, _ := served(t, &bustest.Starter{}, intake.Config{
				Grace: 5 * time.Second, Limits: func(context.Context) ([]run.LimitStatus, error) { return want, nil },
			})
			got, err := client.Limits(t.Context())
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("%v, (-want +got):\n%.2000s", err, diff)
			}
		})
	}
}

func manyLimits(n int) []run.LimitStatus {
	var all []run.LimitStatus
	for i := range n {
		all = append(all, run.LimitStatus{Limit: fmt.Sprintf("%04d/%s", i, strings.Repeat("x", 1000)), Concurrency: 1 + i})
	}
	return all
}

func TestAPILimits(t *testing.T) {
	t.Parallel()
	client, _ := served(t, &bustest.Starter{}, intake.Config{Limits: func(context.Context) ([]run.LimitStatus, error) { return nil, errors.New("it stops") }})
	if _, err := client.Limits(t.Context()); err == nil || !strings.Contains(err.Error(), "it stops") {
		t.Errorf("an engine that stops: %v", err)
	}
	client, _ = served(t, &bustest.Starter{}, intake.Config{})
	if _, err := client.Limits(t.Context()); err == nil {
		t.Error("limits are told where there are none to be told")
	}
}
