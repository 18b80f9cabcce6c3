package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/flowhost/flowhost/cmd/flowhost/internal/cli"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/render"
	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
)

// What is printed, and the exit code, for each way in which a run ends.
func TestShow(t *testing.T) {
	t.Parallel()
	canceled := &run.Failure{Outcome: run.OutcomeCanceled, Code: run.CodeCanceled, Message: "by request"}
	tests := []struct {
		name           string
		state          run.State
		why            error
		asJSON         bool
		stdout, stderr string // parts; "" for nothing at all
		code           int
	}{
		{"succeeded", run.Succeeded, nil, false, `{"n":1}`, "", cli.ExitOK},
		{"succeeded although interrupted", run.Succeeded, cli.ErrInterrupted, false, `{"n":1}`, "", cli.ExitOK},
		{"failed", run.Failed, nil, false, "", "run failed: canceled: by request", cli.ExitFailed},
		{"failed, as JSON", run.Failed, nil, true, `"state":"failed"`, "run failed", cli.ExitFailed},
		{"canceled by somebody else", run.Canceled, nil, false, "", "run canceled", cli.ExitCanceled},
		{"interrupted", run.Canceled, cli.ErrInterrupted, false, "", "run canceled", cli.ExitInterrupted},
		{"timed out", run.Canceled, errTimedOut, false, "", "run canceled", cli.ExitTimeout},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var stdout, stderr bytes.Buffer
			x := &execution{App: cli.NewApp(nil, &stdout, &stderr), asJSON: test.asJSON}
			record := &run.Record{State: test.state, Output: json.RawMessage(`{"n":1}`)}
			if test.state != run.Succeeded {
				record.Error = canceled
			}
			p, err := render.NewProgress(x.Errout, "quiet")
			if err != nil {
				t.Fatal(err)
			}
			if code := cli.CodeOf(x.show(record, test.why, &flows.Flow{}, p)); code != test.code {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
			says(t, "stdout", stdout.String(), test.stdout)
			says(t, "stderr", stderr.String(), test.stderr)
		})
	}
}

func says(t *testing.T, stream, got, want string) {
	t.Helper()
	if want == "" && got != "" || !strings.Contains(got, want) {
		t.Errorf("%s is %q, want %q", stream, got, want)
	}
}
