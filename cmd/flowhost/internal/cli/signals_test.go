package cli

import (
	"context"
	"errors"
	"os"
	"testing"
)

// Not parallel: the signals reach whatever listens in this process.
func TestListenSignals(t *testing.T) {
	soft, hard, stop := ListenSignals(t.Context())
	interrupt(t)
	<-soft.Done()
	if cause := context.Cause(soft); !errors.Is(cause, ErrInterrupted) {
		t.Errorf("the first signal ends soft with %v", cause)
	}
	if hard.Err() != nil {
		t.Error("the first signal cuts everything off")
	}
	interrupt(t)
	<-hard.Done()
	if cause := context.Cause(hard); !errors.Is(cause, ErrInterrupted) {
		t.Errorf("the second signal ends hard with %v", cause)
	}
	stop()
}

func TestListenSignalsStops(t *testing.T) {
	soft, hard, stop := ListenSignals(t.Context())
	stop()
	if soft.Err() == nil || errors.Is(context.Cause(hard), ErrInterrupted) {
		t.Errorf("after stop soft ended with %v, hard with %v", soft.Err(), context.Cause(hard))
	}
}

func interrupt(t *testing.T) {
	t.Helper()
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Signal(os.Interrupt)
	}
	if err != nil {
		t.Fatal(err)
	}
}
