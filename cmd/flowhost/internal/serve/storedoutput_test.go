package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flowhost/flowhost/bus/artifacts"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/settings"
	"github.com/flowhost/flowhost/run"
)

func outside(t *testing.T) *Outside {
	t.Helper()
	o, err := NewOutside(settings.Settings{}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(o.Close)
	return o
}

// returning makes an invoker of StoreOutputs whose calls all return that.
func returning(o *Outside, output json.RawMessage, err error) func(context.Context) (run.Result, error) {
	invoker := o.StoreOutputs(InvokerFunc(func(context.Context, run.Call) (run.Result, error) {
		return run.Result{Outcome: run.OutcomeSucceeded, Output: output}, err
	}))
	return func(ctx context.Context) (run.Result, error) {
		return invoker.Invoke(ctx, run.Call{Run: "r", Task: "t"})
	}
}

func text(size int) json.RawMessage {
	return json.RawMessage(`"` + strings.Repeat("x", size-2) + `"`)
}

func TestStoreOutputs(t *testing.T) {
	t.Parallel()
	o := outside(t)
	small := text(run.MaxRecorded)
	if r, err := returning(o, small, nil)(t.Context()); err != nil || !bytes.Equal(r.Output, small) || o.server != nil {
		t.Errorf("%d bytes, %v", len(r.Output), err)
	}
	large := text(run.MaxRecorded + 1)
	r, err := returning(o, large, nil)(t.Context())
	size, stored := run.StoredSize(r.Output)
	if err != nil || !stored || size != len(large) || r.Outcome != run.OutcomeSucceeded || r.Failure != nil {
		t.Fatalf("%.200s, %+v, %v", r.Output, r.Failure, err)
	}
	var digest string
	for digest = range run.ArtifactDigests(r.Output) {
	}
	name := strings.TrimPrefix(digest, "sha256:")
	back, err := os.ReadFile(filepath.Join(o.temporary, "data", "artifacts", name[:2], name))
	if err != nil || !bytes.Equal(back, large) {
		t.Errorf("%d bytes, %v", len(back), err)
	}
	failed := errors.New("lost")
	if _, err := returning(o, large, failed)(t.Context()); !errors.Is(err, failed) {
		t.Errorf("%v", err)
	}
}

func TestOutputThatIsNotStored(t *testing.T) {
	t.Parallel()
	o := outside(t)
	files, err := artifacts.OpenFiles(artifacts.FilesConfig{Dir: filepath.Join(t.TempDir(), "secret-place"), Quota: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	o.nats.Store(&natsDrivers{artifacts: artifacts.New(artifacts.Config{Store: files})})
	invoke := returning(o, text(run.MaxRecorded+1), nil)
	r, err := invoke(t.Context())
	if f := r.Failure; err != nil || f == nil || r.Outcome != run.OutcomeFailed || f.Code != run.CodeOutputStore || !f.Retryable || r.Output != nil ||
		!strings.Contains(f.Message, "the store of artifacts is full: raise its quota") {
		t.Errorf("%+v %+v, %v", r, r.Failure, err)
	}
	if err := files.Close(); err != nil {
		t.Fatal(err)
	}
	o.nats.Store(&natsDrivers{artifacts: artifacts.New(artifacts.Config{Store: files, Max: 1 << 20})})
	if r, err = invoke(t.Context()); err != nil || r.Failure == nil || strings.Contains(r.Failure.Message, "secret-place") {
		t.Errorf("%+v, %v", r.Failure, err)
	}
	for cause, want := range map[error]run.Outcome{run.ErrDeadline: run.OutcomeTimedOut, run.ErrCanceled: run.OutcomeCanceled, errors.New("the host stops"): ""} {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(fmt.Errorf("%w", cause))
		r, err := invoke(ctx)
		if want == "" && err == nil || want != "" && (err != nil || r.Outcome != want || r.Failure == nil || r.Output != nil) {
			t.Errorf("%v: %+v, %v", cause, r, err)
		}
	}
}
