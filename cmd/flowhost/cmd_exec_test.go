package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

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
		{"succeeded", run.Succeeded, nil, false, `{"n":1}`, "", exitOK},
		{"succeeded although interrupted", run.Succeeded, errInterrupted, false, `{"n":1}`, "", exitOK},
		{"failed", run.Failed, nil, false, "", "run failed: canceled: by request", exitFailed},
		{"failed, as JSON", run.Failed, nil, true, `"state":"failed"`, "run failed", exitFailed},
		{"canceled by somebody else", run.Canceled, nil, false, "", "run canceled", exitCanceled},
		{"interrupted", run.Canceled, errInterrupted, false, "", "run canceled", exitInterrupted},
		{"timed out", run.Canceled, errTimedOut, false, "", "run canceled", exitTimeout},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var stdout, stderr bytes.Buffer
			x := &execution{app: newApp(nil, &stdout, &stderr), asJSON: test.asJSON}
			record := &run.Record{State: test.state, Output: json.RawMessage(`{"n":1}`)}
			if test.state != run.Succeeded {
				record.Error = canceled
			}
			p, err := render.NewProgress(x.errout, "quiet")
			if err != nil {
				t.Fatal(err)
			}
			if code := codeOf(x.show(record, test.why, &flows.Flow{}, p)); code != test.code {
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
