package render

import (
	"bytes"
	"strings"
	"testing"

	"github.com/flowhost/flowhost/run"
)

// A run that has not started shows the reason.
func TestShowPending(t *testing.T) {
	t.Parallel()
	for state, want := range map[run.State]bool{run.Pending: true, run.Running: false} {
		var stdout bytes.Buffer
		out := NewTerminal(&stdout, nil)
		out.DescribeRun(t.Context(), nil, &run.Record{Run: "R", Flow: "f", State: state})
		if got := strings.Contains(stdout.String(), "\nwaits     for other runs of its flow: "); got != want {
			t.Errorf("a run that is %s:\n%s", state, stdout.String())
		}
	}
}
