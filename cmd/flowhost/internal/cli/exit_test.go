package cli

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/flowhost/flowhost/bus/natsd"
	"github.com/flowhost/flowhost/host"
	"github.com/flowhost/flowhost/run"
)

func TestCodeOf(t *testing.T) {
	t.Parallel()
	tests := []struct {
		err  error
		want int
	}{
		{nil, ExitOK},
		{errors.New("anything"), ExitFailed},
		{run.ErrFenced, ExitFailed},
		{run.Requestf(run.RequestParams, "no"), ExitInvalid},
		{&host.ModuleError{Path: "x.wasm", Reason: "none"}, ExitInvalid},
		{fmt.Errorf("opening: %w", &natsd.LockedError{Dir: "data"}), ExitUnreachable},
		{Exitf(ExitTimeout, "late"), ExitTimeout},
		{fmt.Errorf("later: %w", Quiet(ExitDifference)), ExitDifference},
		{ErrInterrupted, ExitInterrupted},
		{context.Canceled, ExitInterrupted},
	}
	for _, test := range tests {
		if got := CodeOf(test.err); got != test.want {
			t.Errorf("%v ends with %d, want %d", test.err, got, test.want)
		}
	}
}
