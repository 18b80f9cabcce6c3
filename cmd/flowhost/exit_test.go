package main

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
		{nil, exitOK},
		{errors.New("anything"), exitFailed},
		{run.ErrFenced, exitFailed},
		{run.Requestf(run.RequestParams, "no"), exitInvalid},
		{&host.ModuleError{Path: "x.wasm", Reason: "none"}, exitInvalid},
		{fmt.Errorf("opening: %w", &natsd.LockedError{Dir: "data"}), exitUnreachable},
		{exitf(exitTimeout, "late"), exitTimeout},
		{fmt.Errorf("later: %w", quiet(exitDifference)), exitDifference},
		{errInterrupted, exitInterrupted},
		{context.Canceled, exitInterrupted},
	}
	for _, test := range tests {
		if got := codeOf(test.err); got != test.want {
			t.Errorf("%v ends with %d, want %d", test.err, got, test.want)
		}
	}
}
