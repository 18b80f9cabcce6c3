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
	for want, r := range map[string]*run.Record{
		"state     pending (waits for run Q, an earlier one of its schedule)\n": {Run: "R", State: run.Pending, WaitsFor: &run.WaitsFor{Reason: run.WaitEarlierRun, Run: "Q"}},
		"state     pending\n": {Run: "R", State: run.Pending},
		"state     running\n": {Run: "R", State: run.Running},
	} {
		var stdout bytes.Buffer
		NewTerminal(&stdout, nil).DescribeRun(t.Context(), nil, r)
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("%s\ncontains no %s", stdout.String(), want)
		}
	}
}
