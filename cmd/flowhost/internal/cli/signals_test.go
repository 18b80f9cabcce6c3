package cli

import (
	"context"
	"errors"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// Not parallel: the signals reach whatever listens in this process.
func TestListenSignals(t *testing.T) {
	soft, hard, stop := ListenSignals(t.Context())
	send(t, os.Interrupt)
	<-soft.Done()
	if cause := context.Cause(soft); !errors.Is(cause, ErrInterrupted) {
		t.Errorf("the first signal ends soft with %v", cause)
	}
	if hard.Err() != nil {
		t.Error("the first signal cuts everything off")
	}
	send(t, syscall.SIGTERM)
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

// A signal that arrives again soon has been sent once, to the process and to its group.
func TestForwardedSignals(t *testing.T) {
	t.Parallel()
	type arrival struct {
		after time.Duration
		what  os.Signal
	}
	for name, c := range map[string]struct {
		then []arrival // after a first SIGTERM
		hard bool
	}{
		"by timeout to the group":   {[]arrival{{time.Millisecond, syscall.SIGTERM}, {forwardTime - 2*time.Millisecond, syscall.SIGTERM}}, false},
		"at the end of the time":    {[]arrival{{forwardTime, syscall.SIGTERM}}, true},
		"again and again":           {[]arrival{{forwardTime / 2, syscall.SIGTERM}, {forwardTime / 2, syscall.SIGTERM}}, true},
		"another one, at once":      {[]arrival{{0, os.Interrupt}}, true},
		"twice, and once more late": {[]arrival{{0, syscall.SIGTERM}, {time.Hour, syscall.SIGTERM}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				arrived := make(chan os.Signal)
				soft, hard, stop := followSignals(t.Context(), arrived)
				defer stop()
				arrived <- syscall.SIGTERM
				<-soft.Done()
				for _, a := range c.then {
					if hard.Err() != nil {
						t.Fatal("it is cut off too early")
					}
					time.Sleep(a.after)
					arrived <- a.what
					synctest.Wait()
				}
				if cut := hard.Err() != nil; cut != c.hard {
					t.Errorf("cut off: %t", cut)
				}
			})
		})
	}
}

func send(t *testing.T, s os.Signal) {
	t.Helper()
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Signal(s)
	}
	if err != nil {
		t.Fatal(err)
	}
}
